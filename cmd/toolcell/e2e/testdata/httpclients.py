"""HTTP clients as they are: each prints what it got from ORIGIN (https://…), or its error.

They are told nothing but the variables of the environment, which a run with the network has.
"""
import asyncio
import os
import subprocess
import sys
import urllib.request
import warnings

# requests misses a module in C: nothing in a mount can be executed. The others do without theirs.
warnings.filterwarnings("ignore", message="Unable to find acceptable character detection")
sys.path.insert(0, "/clients")


def with_urllib():
    return urllib.request.urlopen(ORIGIN + "/v1/urllib").read().decode()  # noqa: F821


def with_requests():
    import requests
    with requests.Session() as session:
        session.get(ORIGIN + "/v1/first")  # noqa: F821
        return session.post(ORIGIN + "/v1/requests", data="body").text  # noqa: F821


def with_httpx():
    import httpx
    return httpx.get(ORIGIN + "/v1/httpx").text  # noqa: F821


def with_httpx_async():
    import httpx

    async def get():
        async with httpx.AsyncClient() as client:
            answers = await asyncio.gather(*(client.get(ORIGIN + "/v1/httpx_async") for _ in range(5)))  # noqa: F821
            return answers[-1].text
    return asyncio.run(get())


def with_aiohttp():
    import aiohttp

    async def get():
        async with aiohttp.ClientSession(trust_env=True) as session, session.get(ORIGIN + "/v1/aiohttp") as answer:  # noqa: F821
            return await answer.text()
    return asyncio.run(get())


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"})
    return done.stdout if done.returncode == 0 else done.stderr


def with_curl():
    return run("curl", "-sS", "--fail-with-body", ORIGIN + "/v1/curl")  # noqa: F821


def with_git():
    return run("git", "clone", "-q", ORIGIN + "/repository.git", "/workspace/clone") or open("/workspace/clone/file").read()  # noqa: F821


if __name__ == "__main__":
    for name in CLIENTS:  # noqa: F821
        try:
            answer = globals()["with_" + name]()
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        print(f"{name}: {(answer.splitlines() or ['nothing'])[0]}")
