"""The Python side of toolcell: runs one piece of code inside the sandbox.

The host starts this file with a stream socket as fd 3 and speaks frames on it: four bytes of big-endian length, then
that many bytes of JSON, an object with a "type". stdout and stderr belong to the code alone.

    runner -> host   ready, then call (many, in parallel), at the end done
    host -> runner   start, then one reply for each call

The process runs the code and ends as any Python does, so that atexit, threads and C buffers behave. It is not pid 1 of
the sandbox: an init, which the host brings, collects zombies and ends everything when the host hangs up.

Imports are few and late: an image without .pyc files compiles each of them at every start. So it is with this file:
what only some runs need is in runner_tools.py and the like, which come along as text and are compiled when needed.
"""
import _ast
import _json
import _thread
import os
import sys

HERE = sys._getframe().f_code.co_filename
# Pickle and tracebacks name a class by its module: users meet ours as mcp.runtime, and __main__ is theirs.
__name__ = "mcp.runtime"

CONTROL_FD = 3
MAX_FRAME = 256 << 20  # from the host
MAX_CALL = 64 << 20  # to it: it ends a run that sends more
READ = 16 << 10  # bytes at once, but of a large message
READER_STACK = 8 << 20  # glibc's usual size
MAX_RESULT = 64 << 10
MAX_ERROR = 2000
OUT = "/workspace/out"  # what is in it outlives the run
CODE_FILE = "<run_python>"
RESULT = "<result>"  # no identifier, so it cannot clash with a name of the code
JSON_SPACE = " \t\n\r"
AST_ONLY, TOP_LEVEL_AWAIT, CO_COROUTINE = 0x400, 0x2000, 0x80
HUNG_UP = "the host closed the connection"

Module = type(sys)

# What the host writes here: the sources of what only some runs need, runner_<name>.py by name, and the manual.
PARTS = {}
MANUAL = ""


def code_of(part):
    """Returns a part, compiled; a template does it for all of its forks."""
    if isinstance(PARTS[part], str):
        PARTS[part] = compile(PARTS[part], HERE, "exec", dont_inherit=True)
    return PARTS[part]


# Frames


class Channel:
    """Whole messages over one stream socket. Any thread may send; only one at a time may receive."""

    def __init__(self, fd):
        self.fd = fd
        os.set_inheritable(fd, False)
        os.set_blocking(fd, True)
        self._identity = self._identify()
        self._writing = _thread.allocate_lock()
        self._held, self._at = b"", 0  # what was read and not yet given
        self._body, self._filled = None, 0  # a message that takes more than one read
        self.when_full = None  # called where a socket that does not block takes no more

    def send(self, message):
        """Writes one message. Raises OSError if the host is gone, ValueError if the message is too large."""
        body = encode(message)
        if len(body) > MAX_CALL:
            raise ValueError(f"the arguments are {len(body)} bytes of JSON; one call can carry {MAX_CALL}")
        rest = memoryview(len(body).to_bytes(4, "big") + body)
        with self._writing:
            while rest:
                self._check()
                try:
                    rest = rest[os.write(self.fd, rest):]
                except BlockingIOError:
                    self.when_full()

    def receive(self):
        """Returns the bytes of the next message, or None when the host has hung up."""
        while True:
            body = self.message()
            if body is not None:
                return body
            if not self.read():
                return None

    def message(self):
        """Returns the bytes of the next message if they have been read, or None. Raises OSError if it is too large."""
        if self._body is not None:
            if self._filled < len(self._body):
                return None
            body, self._body = self._body, None
            return body
        start = self._at + 4
        if len(self._held) < start:
            return None
        end = start + int.from_bytes(self._held[self._at:start], "big")
        if end - start > MAX_FRAME:
            raise OSError(f"a frame of {end - start} bytes")
        if end <= len(self._held):
            self._at = end
            return self._held[start:end]
        self._body, self._filled = bytearray(end - start), len(self._held) - start
        self._body[:self._filled] = self._held[start:]
        self._held, self._at = b"", 0
        return None

    def read(self):
        """Reads more of what comes, of a large message all of it. Returns whether the host has not hung up."""
        if self._body is None:
            self._check()
            more = os.read(self.fd, READ)
            self._held, self._at = self._held[self._at:] + more, 0
            return len(more) > 0
        while self._filled < len(self._body):
            self._check()
            count = os.readv(self.fd, [memoryview(self._body)[self._filled:]])
            if not count:
                return False
            self._filled += count
        return True

    def _check(self):
        # The code may close our fd and open a file that gets its number: never read or write that.
        if self._identify() != self._identity:
            raise OSError("the control socket was closed by the code")

    def _identify(self):
        stat = os.fstat(self.fd)
        return stat.st_dev, stat.st_ino


# JSON, by the C functions beneath the json module: to import that one takes longer than most runs, as it brings re.


def encode(message):
    """Returns the message as JSON. ASCII only: a lone surrogate travels as an escape instead of failing here."""
    quoted = _json.encode_basestring_ascii
    encoder = _json.make_encoder({}, refuse_object, quoted, None, ": ", ", ", False, False, False)
    return "".join(encoder(message, 0)).encode("ascii")


def refuse_object(value):
    raise TypeError(f"{type(value).__name__} is not JSON")


def decode(body):
    """Returns the JSON in body, every mapping in it a Record. Servers may write bytes that are no UTF-8."""
    return parse_json(str(body, "utf-8", "replace"), Reading)


def parse_json(text, how):
    """json.loads, except that some texts that are not JSON have other messages in their ValueError."""
    try:
        value, end = _json.make_scanner(how)(text, len(text) - len(text.lstrip(JSON_SPACE)))
    except StopIteration:
        raise ValueError("this is not JSON") from None
    for at in range(end, len(text), 4096):  # the rest of a long text is not to be copied
        if text[at:at + 4096].strip(JSON_SPACE):
            raise ValueError("more follows the JSON")
    return value


# Errors and values


class MCPError(Exception):
    """A server, or the way to it, refused or failed.

    `message` is the text, `server` and `tool` say whose it is (or None), `raw` is the tool's whole answer if there
    was one.
    """

    def __init__(self, message, server=None, tool=None, raw=None):
        super().__init__(message)
        self.message = message
        self.server = server
        self.tool = tool
        self.raw = raw

    def __str__(self):
        return str(self.message)


class UnknownServerError(MCPError, KeyError):
    """No server of that name was discovered."""


class Record(dict):
    """A mapping whose keys also read as attributes: `issue["title"]` is `issue.title`.

    The methods of dict win over keys of the same name. On the outermost value of a tool, `raw` is the whole answer.
    """

    def __getattr__(self, name):
        if not is_dunder(name) and name in self:
            return self[name]
        raise AttributeError(f"no key {name!r}; " + known_names(name, self))

    def __setattr__(self, name, value):
        self[name] = value

    def __delattr__(self, name):
        if name not in self:
            raise AttributeError(f"no key {name!r}; " + known_names(name, self))
        del self[name]


class Reading:
    """What the scanner of JSON is to do."""

    strict, object_hook, object_pairs_hook = True, Record, None
    parse_float, parse_int, parse_constant = float, int, float


class Strict(Reading):
    """The same for what servers call text: NaN and Infinity are not JSON."""

    def parse_constant(name):
        raise ValueError(f"{name} is not JSON")


class Text(str):
    """A str with the tool's whole answer at `raw`."""


class Integer(int):
    """An int with the tool's whole answer at `raw`."""


class Number(float):
    """A float with the tool's whole answer at `raw`."""


class Sequence(list):
    """A list with the tool's whole answer at `raw`."""


class Ready:
    """Makes a value that is already there awaitable: users write both f() and await f()."""

    def __await__(self):
        return self
        yield  # never reached: it makes this a generator, as __await__ has to be


class ReadyTuple(Ready, tuple):
    """A tuple that may also be awaited."""


class ReadyRecord(Ready, Record):
    """A Record that may also be awaited."""


class ReadyText(Ready, str):
    """A str that may also be awaited."""


CARRIERS = {str: Text, int: Integer, float: Number, list: Sequence}


def is_dunder(name):
    return name.startswith("__")


def known_names(wanted, names):
    """Returns the end of a message about a name that is missing: what there is, and what may have been meant."""
    def fold(name):
        return str(name).replace("_", "").replace("-", "").lower()

    # Not difflib: hasattr() on thousands of records comes through here.
    near = fold(wanted)
    meant = [n for n in names if fold(n) == near] or [n for n in names if near in fold(n) or fold(n) in near]
    hint = f". Did you mean {meant[0]!r}?" if meant and near else ""
    return "there are: " + shortened(names) + hint


def shortened(names, most=20):
    names = [str(name)[:60] for name in names]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more


def tool_value(answer, server, tool, more):
    """Returns what a tool answered as a plain value. Raises MCPError if the answer is the tool's error.

    more() gives what it takes for content that is not text.
    """
    content = answer.get("content") or []
    if answer.get("isError"):
        text = "\n".join(str(item.get("text", "")) for item in content if item.get("type") == "text")
        raise MCPError(text or "the tool failed and gave no reason", server, tool, answer)
    structured = answer.get("structuredContent")
    if structured is not None:
        value = with_raw(unwrapped(structured), answer)
        files = [item for item in content if item.get("type") != "text"]
        return more()["with_attachments"](value, files, server) if files else value
    values = [item_value(item, server, more) for item in content]
    return with_raw(values[0] if len(values) == 1 else values or None, answer)


def unwrapped(structured):
    """Undoes the {"result": …} that servers put around what is not an object, as MCP allows objects only."""
    if isinstance(structured, dict) and list(structured) == ["result"] and not isinstance(structured["result"], dict):
        return structured["result"]
    return structured


def item_value(item, server, more):
    if item.get("type") != "text":
        return more()["content_value"](item, server)
    text = item.get("text", "")
    try:
        return parse_json(text, Strict)
    except (ValueError, RecursionError):
        return text


def with_raw(value, answer):
    """Returns value with the whole answer at .raw, where its type can carry one (True and None cannot)."""
    carrier = CARRIERS.get(type(value))
    if carrier:
        value = carrier(value)
    elif not hasattr(value, "__dict__"):
        return value
    value.__dict__["raw"] = answer
    return value


# Arguments


def jsonable(value, path):
    """Returns value as what JSON knows. Raises TypeError or ValueError that names the path of what is in the way."""
    if value is None or type(value) in (str, bool, int):
        return value
    if hasattr(type(value), "_member_map_"):  # an Enum's
        return jsonable(value.value, path)
    if isinstance(value, float):
        if value - value != 0:
            raise ValueError(f"argument {path}: {value} is not a JSON number")
        return float(value)
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"argument {path}: {type(value).__name__} is not JSON: decode() it to text, or base64 it")
    if isinstance(value, (list, tuple)):
        return [jsonable(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return jsonable(in_order(value), path)
    if hasattr(value, "keys") and hasattr(value, "__getitem__") and not hasattr(value, "to_numpy"):
        return {str(key): jsonable(value[key], f"{path}.{key}") for key in value.keys()}
    return jsonable_object(value, path)


def jsonable_object(value, path):
    """jsonable for objects, told by what they can do, so that no module is imported to ask."""
    kind = type(value)
    if isinstance(value, type):
        raise TypeError(f"argument {path}: the class {value.__name__} is not JSON")
    if hasattr(kind, "__dataclass_fields__"):
        return {name: jsonable(getattr(value, name), f"{path}.{name}") for name in kind.__dataclass_fields__}
    if hasattr(kind, "isoformat"):  # date, time, datetime
        return value.isoformat()
    if hasattr(kind, "__fspath__"):
        return jsonable(os.fspath(value), path)
    if hasattr(kind, "tolist"):  # numpy's arrays and scalars
        return jsonable(value.tolist(), path)
    if any((base.__module__, base.__name__) in (("decimal", "Decimal"), ("uuid", "UUID")) for base in kind.__mro__):
        return str(value)
    hint = ": await it first" if hasattr(kind, "__await__") else ""
    raise TypeError(f"argument {path}: {kind.__name__} is not JSON{hint}")


def in_order(items):
    try:
        return sorted(items)
    except TypeError:
        return list(items)


def arguments_of(given):
    """Returns the arguments of a tool call as a JSON object."""
    if not hasattr(given, "keys"):
        raise TypeError(f"a tool takes a mapping or keyword arguments, not {type(given).__name__}")
    return {str(name): jsonable_argument(given[name], str(name)) for name in given.keys()}


def jsonable_argument(value, path):
    try:
        return jsonable(value, path)
    except RecursionError:
        raise ValueError("the arguments contain themselves, or are nested too deeply for JSON") from None


# Calls to the host


class Host:
    """Asks the host, from any thread or task, and hands each reply to the one who waits for it.

    Replies are read by the event loop that asks, which saves the way from thread to thread. Where others ask too, or
    the host does not take what is sent, a thread reads them from then on.
    """

    def __init__(self, channel):
        self._channel = channel
        self._pid = os.getpid()
        self._lock = _thread.allocate_lock()
        self._waiting = {}
        self._count = 0
        self._reader = None  # the event loop that reads, or _thread where a thread does
        self._receiving = _thread.allocate_lock()
        self._closed = False
        channel.when_full = self._read_by_thread

    def ask(self, method, params):
        """Returns the host's answer; blocks this thread only. Raises MCPError if the host refuses or is gone."""
        return self.begin(method, params)()

    def begin(self, method, params):
        """Sends a question. Returns a function that waits for its answer."""
        gate = _thread.allocate_lock()
        gate.acquire()
        replies = []

        def settle(reply):
            replies.append(reply)
            gate.release()

        def wait():
            gate.acquire()
            return result_of(replies[0])

        self._post(method, params, settle)
        return wait

    async def ask_async(self, method, params):
        """ask for a task: the loop goes on meanwhile."""
        import asyncio
        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def resolve(reply):
            if not future.done():  # a cancelled task left it
                future.set_result(reply)

        def settle(reply):
            if asyncio._get_running_loop() is loop:
                return resolve(reply)
            try:
                loop.call_soon_threadsafe(resolve, reply)
            except RuntimeError:
                pass  # the loop was closed: nobody waits any more

        self._post(method, params, settle, loop)
        return result_of(await future)

    def _post(self, method, params, settle, loop=None):
        # A forked process shares the socket: what it read would be missing here.
        if os.getpid() != self._pid:
            raise MCPError("tools can only be called from the main process")
        with self._lock:
            if self._closed:
                raise MCPError(HUNG_UP)
            self.listen(loop)
            self._count += 1
            number = self._count
            self._waiting[number] = settle
        try:
            self._channel.send({"type": "call", "id": number, "method": method, "params": params})
        except BaseException as error:
            self._waiting.pop(number, None)
            if isinstance(error, OSError):
                raise MCPError(HUNG_UP) from None
            raise

    def listen(self, loop=None):
        """Sees to it that what the host sends is read. The caller holds the lock."""
        if self._reader is _thread or loop is not None and self._reader is loop:
            return
        if loop is not None and (self._reader is None or self._reader.is_closed()):
            try:
                loop.add_reader(self._channel.fd, self._readable, loop)
            except Exception:
                pass  # not every kind of loop can
            else:
                self._reader = loop
                os.set_blocking(self._channel.fd, False)
                return
        os.set_blocking(self._channel.fd, True)
        start_reader(self._read)
        self._reader = _thread

    def _read_by_thread(self):
        os.set_blocking(self._channel.fd, True)
        # Who else has the lock asks from another thread, and starts it, or was interrupted by a signal handler of ours.
        if self._lock.acquire(False):
            try:
                self.listen()
            except RuntimeError:
                pass  # the code has as many threads as there may be: what is being sent just waits
            finally:
                self._lock.release()

    def _readable(self, loop):
        """Is called by the loop that reads when something came."""
        if self._reader is not loop or not self._receiving.acquire(False):
            loop.remove_reader(self._channel.fd)
            return
        try:
            go_on = self._hand_out(self._channel.read())
        except BlockingIOError:
            go_on = True
        except (OSError, MemoryError):
            go_on = False
        finally:
            self._receiving.release()
        if not go_on:
            loop.remove_reader(self._channel.fd)
            self._close()

    def _read(self):
        """Runs in a thread of its own: hands out replies until the host hangs up."""
        with self._receiving:
            try:
                while self._hand_out(self._channel.read()):
                    pass
            except (OSError, MemoryError):
                pass
        self._close()

    def _hand_out(self, go_on):
        """Gives every reply that has been read whole to the one who waits for it. Returns go_on."""
        while go_on:
            body = self._channel.message()
            if body is None:
                break
            try:
                reply = decode(body)
                settle = self._waiting.pop(reply.get("id"), None)
            except (ValueError, AttributeError, TypeError, RecursionError, MemoryError) as error:
                # Whose answer it was cannot be known, and nobody may wait for ever.
                self._fail_all(f"the host's answer cannot be read: {type(error).__name__}: {error}")
                continue
            if settle:
                settle(reply)
        return go_on

    def _close(self):
        with self._lock:
            self._closed = True
        self._fail_all(HUNG_UP)

    def _fail_all(self, message):
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for settle in waiting.values():
            settle({"error": {"message": message}})


def start_reader(read):
    """Starts a thread with as much stack as Python counts on: musl gives less, and deep JSON would be a segfault."""
    usual = _thread.stack_size(READER_STACK)
    try:
        _thread.start_new_thread(read, ())
    finally:
        _thread.stack_size(usual)


def result_of(reply):
    error = reply.get("error")
    if error is None:
        return reply.get("result")
    message = error.get("message", "the host gave no reason")
    kind = {"TypeError": TypeError, "ValueError": ValueError}.get(error.get("kind"))
    raise kind(message) if kind else MCPError(message, error.get("server"), error.get("tool"))


# What the code sees: servers and tools


class Tool:
    # No docstring: help() is to show that of the instance.

    def __init__(self, runtime, server, name):
        self._runtime, self._server, self._name = runtime, server, name
        self.__name__ = name

    def __call__(self, /, *args, **kwargs):
        call = self._runtime._call(self._server, self._name, args, kwargs)
        # Python's warning about a call that nobody awaited should name the tool.
        call.__name__ = self._name
        call.__qualname__ = f"mcp_servers[{self._server!r}].{self._name}"
        return call

    @property
    def __signature__(self):
        return self._runtime.more()["signature_of"](self._runtime.about(self._server, self._name))

    @property
    def __doc__(self):
        return self._runtime.more()["tool_help"](self._runtime.about(self._server, self._name))

    def __repr__(self):
        return f"<tool {self._name!r} of MCP server {self._server!r}>"


class Server:
    # No docstring: help() is to show that of the instance.

    def __init__(self, runtime, entry):
        self._runtime, self._name = runtime, entry["name"]
        about = entry.get("description")
        self._title = f"MCP server {self._name!r}" + (f": {about}" if about else "")

    def __getattr__(self, tool):
        # An alias starts with an underscore only before a digit; all else is Python asking for its own.
        if tool.startswith("_") and not tool[1:2].isdigit():
            raise AttributeError(f"an MCP server has no attribute {tool!r}")
        return self[tool]

    def __getitem__(self, tool):
        return Tool(self._runtime, self._name, tool)

    __iter__ = None  # or Python would iterate by item 0, 1, 2… for ever

    def __dir__(self):
        return ["list_tools", *(tool["alias"] for tool in self._runtime.list_tools_sync(self))]

    @property
    def __doc__(self):
        return self._runtime.more()["server_help"](self._title, self._runtime.list_tools_sync(self))

    def list_tools(self):
        """Await it: all tools of this server, each with name, alias, description and input_schema."""
        return self._runtime.list_tools(self._name)

    def __repr__(self):
        return f"<{self._title}>"


class Servers(dict):
    """mcp_servers: the servers this run may call, by name. Others can be had too; the host refuses their calls."""

    def __init__(self, runtime, names):
        super().__init__((name, runtime.server(name)) for name in names)
        self._runtime = runtime

    def __missing__(self, name):
        return self._runtime.server(name)


class Runtime:
    """The functions of mcp.runtime: find, read about and call the tools of every MCP server."""

    PUBLIC = ("call_tool", "capability_summary", "describe_server", "discovered_servers", "display", "end_session",
              "export_tools", "get_prompt", "get_prompt_sync", "list_loaded_server_metadata", "list_prompts",
              "list_prompts_sync",
              "list_resource_templates", "list_resource_templates_sync", "list_resources", "list_resources_sync",
              "list_servers", "list_servers_sync", "list_tools", "list_tools_sync", "query_tool_docs",
              "query_tool_docs_sync", "read_resource", "read_resource_sync", "remove_tool", "save_tool",
              "saved_tools", "search_tool_docs", "search_tool_docs_sync", "stubs")

    def __init__(self, host, sources):
        self._host = host
        self._sources = sources
        self.tools = None  # the saved ones, set by whoever loads them
        self.saved_here = {}  # what the code itself has saved, by name
        self.ending = False  # the session, with this run
        self._parts = set()
        self.meet(())

    def meet(self, servers):
        """Takes in which servers there are, and which of them this run may call."""
        self._entries = {entry["name"]: entry for entry in servers}
        self._names = {entry["alias"]: entry["name"] for entry in servers}
        self.granted = tuple(entry["name"] for entry in servers if entry.get("granted"))
        self._abouts = {}

    def server(self, name):
        """Returns the proxy of a discovered server, by name or alias. Raises UnknownServerError for others."""
        entry = self._entries.get(self._name(name))
        if entry is None:
            raise UnknownServerError(f"no MCP server {name!r}; " + known_names(name, self._entries), name)
        return Server(self, entry)

    def aliases(self):
        """Returns {alias: name} of all discovered servers."""
        return self._names

    def _name(self, server):
        if isinstance(server, Server):
            return server._name
        return server if server in self._entries else self._names.get(server, server)

    def part(self, name):
        """Runs runner_<name>.py in the namespace of this file, once, and returns that."""
        names = globals()
        if name not in self._parts:
            exec(code_of(name), names)
            self._parts.add(name)
        return names

    def watch_pyplot(self):
        """Makes plt.show() do what it does in a notebook."""
        def hook(pyplot):
            # A function: pyplot gives it the signature of its backend's.
            pyplot.show = lambda *args, **kwargs: self.show_figures()

        if "matplotlib.pyplot" in sys.modules:
            hook(sys.modules["matplotlib.pyplot"])
        else:
            self._sources.hooks["matplotlib.pyplot"] = hook

    def show_figures(self):
        """Displays the open figures and closes them."""
        pylab = sys.modules.get("matplotlib._pylab_helpers")
        if pylab and pylab.Gcf.figs:
            self.part("display")["show_figures"](self._host, pylab.Gcf)

    def more(self):
        """Returns the names of runner_tools.py, which it loads at the first call."""
        if "tools" not in self._parts:
            names = self.part("tools")
            names["ResourceLink"].runtime = self
            for kind in names["MORE_CLASSES"]:
                setattr(sys.modules["mcp.runtime"], kind.__name__, kind)  # where pickle looks for them
        return globals()

    def about(self, server, tool):
        """Returns what the host knows of a tool and its signature."""
        key = server, tool
        if key not in self._abouts:
            self._abouts[key] = self._host.ask("tool_signature", {"server": server, "tool": tool})
        return self._abouts[key]

    async def call_tool(self, server, tool, arguments=None):
        """Calls a tool and returns its value; the whole answer is at the value's .raw.

        The arguments are a mapping and go to the server unchecked. Raises MCPError if the tool reports an error or
        may not be called, TypeError or ValueError if the arguments are not JSON.
        """
        name = self._name(server)
        params = {"server": name, "tool": tool, "arguments": arguments_of(arguments or {})}
        return tool_value(await self._host.ask_async("call_tool", params), name, tool, self.more)

    async def _call(self, name, tool, args, kwargs):
        """call_tool with the arguments of a function, which the host binds to the tool's parameters."""
        if len(args) == 1 and hasattr(args[0], "keys"):
            args = [arguments_of(args[0])]
        else:
            args = [jsonable_argument(value, str(index)) for index, value in enumerate(args, 1)]
        params = {"server": name, "tool": tool, "args": args, "named": arguments_of(kwargs)}
        return tool_value(await self._host.ask_async("call_tool", params), name, tool, self.more)

    def discovered_servers(self, detailed=False):
        """Returns the names of all known servers; detailed: records of name, alias, description and status."""
        return ReadyTuple(self._host.ask("describe_servers", {}) if detailed else self._entries)

    def list_servers(self):
        """Returns the names of all known servers, as the host knows them now; may be awaited."""
        return ReadyTuple(self._host.ask("list_servers", {}))

    def list_servers_sync(self):
        """Returns the names of all known servers, as the host knows them now."""
        return tuple(self.list_servers())

    async def list_tools(self, server):
        """Returns the tools of a server: records of name, alias, description and input_schema."""
        return await self._host.ask_async("list_tools", {"server": self._name(server)})

    def list_tools_sync(self, server):
        """list_tools for code that cannot await."""
        return self._host.ask("list_tools", {"server": self._name(server)})

    def describe_server(self, name):
        """Returns a record of a server's name, alias, description and tools; may be awaited."""
        return ReadyRecord(self._host.ask("describe_server", {"server": self._name(name)}))

    def list_loaded_server_metadata(self):
        """Returns describe_server for each server this run may call. One that fails has no tools, and an error."""
        waits = [(name, self._host.begin("describe_server", {"server": name})) for name in self.granted]
        return ReadyTuple(self._described(name, wait) for name, wait in waits)

    def _described(self, name, wait):
        try:
            return wait()
        except MCPError as error:
            entry = self._entries[name]
            return Record(name=name, alias=entry["alias"], description=entry.get("description", ""), tools=[],
                          error=str(error))

    async def query_tool_docs(self, server, tool=None, detail="summary"):
        """Returns the docs of a server's tools, or of one tool.

        detail "full" adds signature, which is what print shows, and inputSchema; "schema" is inputSchema alone.
        """
        docs = await self._host.ask_async(*self._query(server, tool, detail))
        return one_or_all(self._docs(docs, detail), server, tool)

    def query_tool_docs_sync(self, server, tool=None, detail="summary"):
        """query_tool_docs for code that cannot await."""
        return one_or_all(self._docs(self._host.ask(*self._query(server, tool, detail)), detail), server, tool)

    def _query(self, server, tool, detail):
        params = {"server": self._name(server), "detail": checked_detail(detail)}
        if tool is not None:
            params["tool"] = tool
        return "query_tool_docs", params

    def _docs(self, docs, detail):
        return self.more()["full_docs"](docs) if detail == "full" else docs

    async def search_tool_docs(self, query, *, limit=5, detail="summary"):
        """Returns the docs of the tools, of all servers, that fit the query best."""
        params = {"query": query, "limit": limit, "detail": checked_detail(detail)}
        return self._docs(await self._host.ask_async("search_tool_docs", params), detail)

    def search_tool_docs_sync(self, query, *, limit=5, detail="summary"):
        """search_tool_docs for code that cannot await."""
        params = {"query": query, "limit": limit, "detail": checked_detail(detail)}
        return self._docs(self._host.ask("search_tool_docs", params), detail)

    def stubs(self, server, *tools):
        """Returns the tools of a server, or those named, as the text of a .pyi file; may be awaited."""
        return ReadyText(self._host.ask("stubs", {"server": self._name(server), "tools": list(tools)}))

    async def list_resources(self, server):
        """Returns the resources of a server: records of uri, name, mime_type…, each with read()."""
        return self._links(server, await self._host.ask_async(*self._of("list_resources", server)))

    def list_resources_sync(self, server):
        """list_resources for code that cannot await."""
        return self._links(server, self._host.ask(*self._of("list_resources", server)))

    async def list_resource_templates(self, server):
        """Returns the resource templates of a server: records of uriTemplate, name…"""
        return listed(await self._host.ask_async(*self._of("list_resource_templates", server)), "resourceTemplates")

    def list_resource_templates_sync(self, server):
        """list_resource_templates for code that cannot await."""
        return listed(self._host.ask(*self._of("list_resource_templates", server)), "resourceTemplates")

    async def read_resource(self, server, uri):
        """Returns the content of a resource: text, an object with data, mime_type and save(path), or a list of them."""
        return self._content(server, await self._host.ask_async(*self._of("read_resource", server, uri=str(uri))))

    def read_resource_sync(self, server, uri):
        """read_resource for code that cannot await."""
        return self._content(server, self._host.ask(*self._of("read_resource", server, uri=str(uri))))

    async def list_prompts(self, server):
        """Returns the prompts of a server: records of name, description and arguments."""
        return listed(await self._host.ask_async(*self._of("list_prompts", server)), "prompts")

    def list_prompts_sync(self, server):
        """list_prompts for code that cannot await."""
        return listed(self._host.ask(*self._of("list_prompts", server)), "prompts")

    async def get_prompt(self, server, name, arguments=None):
        """Returns a prompt: a record of description and messages, each of role and content."""
        return self._prompt(server, await self._host.ask_async(*self._prompting(server, name, arguments)))

    def get_prompt_sync(self, server, name, arguments=None):
        """get_prompt for code that cannot await."""
        return self._prompt(server, self._host.ask(*self._prompting(server, name, arguments)))

    def _of(self, method, server, **params):
        return method, {"server": self._name(server), **params}

    def _links(self, server, answer):
        link = self.more()["ResourceLink"]
        return [link.of(item, self._name(server)) for item in listed(answer, "resources")]

    def _content(self, server, answer):
        return self.more()["resource_value"](answer, self._name(server))

    def _prompting(self, server, name, arguments):
        texts = {key: value if isinstance(value, str) else encode(value).decode()
                 for key, value in arguments_of(arguments or {}).items()}
        return self._of("get_prompt", server, name=name, arguments=texts)

    def _prompt(self, server, answer):
        return self.more()["prompt_value"](answer, self._name(server))

    def capability_summary(self):
        """Returns the manual of this Python as text."""
        return ReadyText(MANUAL)

    def display(self, *values):
        """Shows each value as a notebook would: figures and pictures as pictures, all else as text."""
        for value in values:
            self.part("display")["display"](self, value)

    def save_tool(self, func):
        """Keeps a function or class of this code for later runs (from user_tools import …). Returns it: a decorator.

        Raises ValueError if its source is not in this code, if it needs what only this code has, such as variables
        of an enclosing function, or if it has the name of a builtin.
        """
        self.part("saved")["save_tool"](self, func)
        return func

    def saved_tools(self):
        """Returns the saved tools: records of name, signature, doc, imports and saved; may be awaited."""
        return ReadyTuple(self._host.ask("saved_tools", {}))

    def remove_tool(self, name):
        """Forgets a saved tool, returns the names of those left; may be awaited. Raises MCPError if there is none."""
        self._host.ask("remove_tool", {"name": str(name)})
        self.tools.forget(str(name))
        return ReadyTuple(sorted(self.tools.saved))

    def export_tools(self, *names):
        """Returns the saved tools, or those named, as the text of one Python module; may be awaited."""
        return ReadyText(self._host.ask("export_tools", {"tools": list(names)}))

    def end_session(self):
        """Ends the session with this run: the next call with its name begins a new one. Without a session: nothing."""
        self.ending = True


def checked_detail(detail):
    if detail not in ("summary", "full", "schema"):
        raise ValueError(f"detail is 'summary', 'full' or 'schema', not {detail!r}")
    return detail


def listed(answer, key):
    """Returns the list in an answer, which is the list itself or has it under key."""
    return answer if isinstance(answer, list) else answer.get(key) or []


def one_or_all(docs, server, tool):
    if tool is None or not isinstance(docs, list):
        return docs
    if not docs:
        raise MCPError(f"the server has no tool {tool!r}", server, tool)
    return docs[0]


# Modules


def install_modules(runtime):
    """Registers mcp and mcp.runtime. Returns the names every piece of code starts with, without those of servers."""
    mcp = package("mcp", "The user's MCP servers, in Python.")
    mcp.MCPError = MCPError
    mcp.runtime = runtime_module(runtime)
    for module in (mcp, mcp.runtime):
        sys.modules[module.__name__] = module
    return {"mcp": mcp, "display": runtime.display}


def install_servers(runtime, mcp):
    """Registers mcp.servers.*. Returns the names that lead to servers."""
    mcp.servers = package("mcp.servers", "One module for each MCP server, one function for each of its tools.")
    mcp.servers.__all__ = list(runtime.aliases())
    sys.modules["mcp.servers"] = mcp.servers
    names = {}
    for alias, name in runtime.aliases().items():
        module = server_module("mcp.servers." + alias, runtime.server(name), runtime)
        setattr(mcp.servers, alias, module)
        sys.modules[module.__name__] = module
        names["mcp_" + alias] = runtime.server(name)
    names.update(mcp_servers=Servers(runtime, runtime.granted), LOADED_MCP_SERVERS=runtime.granted)
    return names


def package(name, doc):
    module = Module(name, doc)
    module.__path__ = []  # a package, with nothing on disk: import x.y looks in sys.modules and ends there
    return module


def runtime_module(runtime):
    module = Module("mcp.runtime", Runtime.__doc__)
    for kind in (MCPError, UnknownServerError, Record, Ready, ReadyTuple, ReadyRecord, ReadyText,
                 *CARRIERS.values()):
        setattr(module, kind.__name__, kind)  # where pickle looks for them
    for name in runtime.PUBLIC:
        setattr(module, name, getattr(runtime, name))
    module.__all__ = [*runtime.PUBLIC, "MCPError"]
    return module


def server_module(name, server, runtime):
    """Returns a module whose names are the server's tools, by alias or name. It asks for them when first used."""
    module = Module(name, server._title)
    known = []

    def tools():
        if not known:
            known.extend(runtime.list_tools_sync(server))
        return known

    def __getattr__(wanted):
        if wanted == "__all__":
            return [tool["alias"] for tool in tools()]
        if not is_dunder(wanted):
            for tool in tools():
                if wanted in (tool["alias"], tool["name"]):
                    return server[tool["name"]]
            raise AttributeError(f"no tool {wanted!r}; " + known_names(wanted, [tool["alias"] for tool in tools()]))
        raise AttributeError(f"module {name!r} has no attribute {wanted!r}")

    module.__getattr__ = __getattr__
    module.__dir__ = lambda: [tool["alias"] for tool in tools()]
    return module


# Saved tools and sources


class SavedTools:
    """The functions that earlier runs saved: the module user_tools, each compiled when first spoken of.

    They live in a namespace of their own, so that no name of the code can change what they do.
    """

    def __init__(self, runtime, saved, names):
        self.saved = {name for name in saved if not is_builtin(name)}
        self.runtime = runtime
        self._tried = {}
        self.module = Module("user_tools", "Functions saved by runtime.save_tool.")
        self.module.__dict__.update(names, __getattr__=self._attribute, __dir__=lambda: sorted(self.saved))
        sys.modules["user_tools"] = self.module

    def forget(self, name):
        """Lets go of a tool that was removed, or is saved anew."""
        self.saved.discard(name)
        self._tried.pop(name, None)
        self.module.__dict__.pop(name, None)

    def provide(self, tree, source, namespace):
        """Puts into namespace what the code speaks of without saying where it is from: asyncio, and saved tools.

        Any earlier run may have saved a tool, so none takes the place of what the code would have without it.
        """
        if not self.saved and "asyncio" not in source:
            return
        names = unbound(tree)
        if "asyncio" in names:
            import asyncio
            namespace.setdefault("asyncio", asyncio)
        for name in names.intersection(self.saved).difference(namespace):
            if self._load(name):
                namespace[name] = self.module.__dict__[name]

    def _attribute(self, name):
        if name == "__all__":
            return [saved for saved in sorted(self.saved) if self._load(saved)]
        if name not in self.saved:
            raise AttributeError(f"no saved tool {name!r}; " + known_names(name, sorted(self.saved)))
        if not self._load(name):
            raise AttributeError(f"the saved tool {name!r} does not run any more: {self._tried[name]}")
        return self.module.__dict__[name]

    def _load(self, name):
        """Defines a saved tool, and reports whether it could."""
        if name not in self._tried:
            self._tried[name] = "it needs itself"
            self._tried[name] = self.runtime.part("saved")["load"](self.runtime, name)
        return not self._tried[name]


def unbound(tree):
    """Returns the names that a syntax tree reads and binds nowhere, builtins left out."""
    read, bound, todo = set(), set(), [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, _ast.Name):
            (read if isinstance(node.ctx, _ast.Load) else bound).add(node.id)
        elif isinstance(node, _ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, _ast.arg):
            bound.add(node.arg)
        else:
            bound.add(getattr(node, "name", None))  # of a function, class, exception or pattern
        for field in node._fields:
            value = getattr(node, field, None)
            todo += [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, _ast.AST)]
    return {name for name in read - bound if not is_builtin(name)}


def is_builtin(name):
    import builtins
    return hasattr(builtins, name)


class Sources:
    """The texts behind file names that are no files, for tracebacks and save_tool.

    linecache has to hold them, but takes longer to import than most runs take: they wait here, as an import hook,
    until somebody imports it.
    """

    def __init__(self):
        self.texts = {}
        self.hooks = {"linecache": self.fill}  # what is to be done once a module was loaded
        sys.meta_path.insert(0, self)

    def add(self, file, text):
        self.texts[file] = text
        if "linecache" in sys.modules:
            self.fill(sys.modules["linecache"])

    def fill(self, linecache):
        """Gives linecache our texts; without a time stamp it never asks the disk for them."""
        for file, text in self.texts.items():
            linecache.cache[file] = len(text), None, [line + "\n" for line in text.split("\n")], file

    def find_spec(self, name, path=None, target=None):
        """The import hook: leaves finding to the others, and calls a module's hook after it was loaded."""
        hook = self.hooks.pop(name, None)
        if hook is None:
            return None
        spec = next(filter(None, (finder.find_spec(name, path) for finder in sys.meta_path)), None)
        if spec is not None:
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                hook(module)

            spec.loader.exec_module = exec_module
        return spec


# Running the code


def run(source, namespace, sources, tools):
    """Runs the code as __main__. Returns exit code, repr of its last expression, error, limit hit: all but the first
    may be None.
    """
    try:
        tree = parse(source)
        tools.provide(tree, source, namespace)
        value = execute(compile(tree, CODE_FILE, "exec", TOP_LEVEL_AWAIT, dont_inherit=True), namespace)
        return 0, None if value is None or drawn(value, tools) else shown(value, tools), None, None
    except SystemExit as stop:
        hide_runner(stop)  # asyncio prints it, if it came from a task
        return exit_code(stop), None, None, None
    except BaseException as error:
        hint = report(error, sources, tools)
        return 1, None, describe(error) + hint, limit_hit(error)


def parse(source):
    """Returns the syntax tree of the code; if an expression stands last, its value goes to the name RESULT."""
    tree = compile(source, CODE_FILE, "exec", AST_ONLY | TOP_LEVEL_AWAIT, dont_inherit=True)
    last = tree.body[-1] if tree.body else None
    if isinstance(last, _ast.Expr):
        # An assignment, and not a second piece of code: __future__ imports and line numbers stay as they are.
        place = {"lineno": last.lineno, "col_offset": last.col_offset}
        target = _ast.Name(RESULT, _ast.Store(), **place)
        tree.body[-1] = _ast.Assign([target], last.value, **place)
    return tree


def execute(code, namespace):
    """Runs the code object, in an event loop if it awaits. Returns the value of its last expression."""
    if code.co_flags & CO_COROUTINE:
        return in_loop(eval(code, namespace), namespace)
    exec(code, namespace)
    value = namespace.pop(RESULT, None)
    return in_loop(value, namespace) if is_coroutine(value) else value


def in_loop(coroutine, namespace):
    async def caught():
        # Caught in here, where no frame of asyncio has got into the traceback yet.
        try:
            value = await coroutine
            value = namespace.pop(RESULT, value)
            return await value if is_coroutine(value) else value, None
        except BaseException as error:
            return None, error

    value, error = run_loop(caught())
    if error is not None:
        raise error
    return value


def run_loop(coroutine):
    import asyncio
    return asyncio.run(coroutine)


def is_coroutine(value):
    return type(value).__name__ == "coroutine" and hasattr(value, "cr_frame")


def shown(value, tools):
    """Returns what a notebook would show of a value, cut to MAX_RESULT bytes; the cut is said."""
    text = None
    if isinstance(value, (list, tuple, dict, set, frozenset)) or type(value).__name__ == "DataFrame":
        text = repr(value) if is_small(value) else None
        if text is None or len(text) > 100:
            try:
                text = tools.runtime.part("show")["show"](value)
            except MCPError:
                pass  # the host is gone, or this is another process
    text = (repr(value) if text is None else text).encode("utf-8", "backslashreplace")
    if len(text) > MAX_RESULT:
        note = b" ... cut: %d bytes in all" % len(text)
        text = text[:MAX_RESULT - len(note)].decode("utf-8", "ignore").encode("utf-8") + note
    return text.decode("utf-8")


def drawn(value, tools):
    """Shows a value of which a notebook would show a picture. Returns False for others."""
    kind = type(value)
    if kind is type or not any(hasattr(kind, name) for name in (
            "savefig", "_repr_png_", "_repr_jpeg_", "_repr_svg_", "_repr_mimebundle_", "_repr_markdown_")):
        return False
    try:
        return tools.runtime.part("display")["draws"](tools.runtime, value)
    except MCPError:
        return False  # the host is gone, or this is another process


def is_small(value, depth=3):
    """Reports whether a value may fit on a line: what is large is not written for the sake of finding out."""
    if type(value) in (list, tuple):
        return depth > 0 and len(value) <= 20 and all(is_small(item, depth - 1) for item in value)
    if type(value) in (dict, Record):
        return depth > 0 and len(value) <= 10 and all(is_small(item, depth - 1) for item in (*value, *value.values()))
    return type(value) in (int, float, bool, type(None)) or type(value) is str and len(value) <= 100


def exit_code(stop):
    """Returns the exit status of a SystemExit, as Python has it: a text is printed and means 1."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    try:
        print(stop.code, file=sys.stderr)
    except Exception:
        pass
    return 1


def describe(error):
    """Returns an exception as "Type: message", of bounded length."""
    try:
        text = str(error)
    except Exception:
        text = "<exception str() failed>"
    return (type(error).__name__ + (": " + text if text else ""))[:MAX_ERROR]


def limit_hit(error):
    """Returns the name of the limit that an exception comes from, or None."""
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return "pids"
    if not isinstance(error, OSError):
        return None
    import errno
    # A socket may have to be tried again too: only what forks has hit a limit.
    if error.errno == errno.EAGAIN and any("fork" in name or "spawn" in name for name in names_at(error)):
        return "pids"
    return {errno.EMFILE: "files", errno.ENFILE: "files", errno.ENOSPC: "space", errno.EDQUOT: "space"}.get(error.errno)


def names_at(error):
    """Returns the global names and attributes that the code uses in which an exception arose."""
    entry = error.__traceback__
    while entry and entry.tb_next:
        entry = entry.tb_next
    return entry.tb_frame.f_code.co_names if entry else ()


def report(error, sources, tools):
    """Prints an uncaught exception, without our frames. Returns what may have been meant. Never raises."""
    try:
        hide_runner(error)
        if isinstance(error, SyntaxError):
            add_source_line(error, sources)
        if sys.excepthook is not sys.__excepthook__:
            sys.excepthook(type(error), error, error.__traceback__)
            return ""
        try:
            explain = tools.runtime.part("errors")["explain"]
        except MCPError:
            sys.__excepthook__(type(error), error, error.__traceback__)
            return ""
        return explain(error, sources)
    except BaseException:
        try:
            os.write(2, (describe(error) + "\n").encode("utf-8", "backslashreplace"))
        except OSError:
            pass
        return ""


def hide_runner(error):
    """Takes our frames out of the tracebacks of an exception and of all that hang on it."""
    seen, todo = set(), [error]
    while todo:
        error = todo.pop()
        if not isinstance(error, BaseException) or id(error) in seen:
            continue
        seen.add(id(error))
        error.__traceback__ = without_runner(error.__traceback__)
        todo += [error.__cause__, error.__context__]
        group = getattr(error, "exceptions", ())
        todo += group if isinstance(group, (list, tuple)) else ()


def without_runner(entry):
    while entry and is_ours(entry):
        entry = entry.tb_next
    at = entry
    while at:
        while at.tb_next and is_ours(at.tb_next):
            at.tb_next = at.tb_next.tb_next
        at = at.tb_next
    return entry


def is_ours(entry):
    return entry.tb_frame.f_code.co_filename == HERE


def add_source_line(error, sources):
    # The compiler looks for the line in a file, and there is none.
    lines = sources.texts.get(error.filename, "").split("\n")
    if error.text is None and error.lineno and error.lineno <= len(lines):
        error.text = lines[error.lineno - 1] + "\n"


# The process


def work(channel, runtime, start):
    """Does what the start message says, returns the exit code."""
    sys.argv[:] = start.get("argv") or [""]
    namespace = sys.modules["__main__"].__dict__
    meet(runtime, start, namespace)
    if start.get("session"):
        return runtime.part("session")["hold"](channel, runtime, start, namespace)
    return run_one(channel, runtime, start, namespace, dict)[0]


def meet(runtime, start, namespace):
    """Makes what this run may call known to its code."""
    runtime.meet(start.get("servers") or ())
    names = install_servers(runtime, namespace["mcp"])
    namespace.update(names)
    names.update(mcp=namespace["mcp"], display=namespace["display"])
    runtime.tools = SavedTools(runtime, start.get("saved") or (), names)


def listen_for_the_end(runtime, channel):
    """Makes the host's signal that the time is up tell where the code is. What of it C code can tell needs no turn of
    Python's: it goes out as text.
    """
    def tell(signum, frame):
        try:
            runtime.part("where")["tell_where"](runtime, channel, frame)
        except BaseException:
            pass  # what the text says has to do

    try:
        import _signal
        import faulthandler
        _signal.signal(_signal.SIGURG, tell)
        faulthandler.register(_signal.SIGURG, file=channel.fd, all_threads=False, chain=True)
    except Exception:
        pass  # a Python that was built without


def run_one(channel, runtime, start, namespace, more):
    """Runs the code and reports to the host, with what more() gives. Returns the exit code and whether it was told."""
    pid = os.getpid()
    source = start.get("code", "").replace("\r\n", "\n").replace("\r", "\n")
    runtime._sources.add(CODE_FILE, source)
    runtime.watch_pyplot()
    code, result, error, limit = run(source, namespace, runtime._sources, runtime.tools)
    # A process that the code forked comes back here too: only the first one has anything to report.
    if os.getpid() != pid:
        return code, False
    leave(runtime)
    done = {"type": "done", "exitCode": code, "result": result, "error": error, "limit": limit, **more()}
    try:
        channel.send({key: value for key, value in done.items() if value is not None})
    except Exception:
        return code, False  # the code broke the socket: the host goes by the exit status
    return code, True


def leave(runtime):
    """Hands over what the code has drawn, and makes sure that the host can read what is in OUT. Never raises."""
    try:
        runtime.show_figures()
        if os.listdir(OUT):
            runtime.part("display")["open_files"](OUT)
    except BaseException as error:
        if not isinstance(error, OSError):  # OUT is not there
            os.write(2, (describe(error) + "\n").encode("utf-8", "backslashreplace"))


def set_up_process():
    """Makes this process look like python running a script from the working directory."""
    for stream in (sys.stdout, sys.stderr):
        # Text from anywhere can be printed: a lone surrogate comes out as \udc80.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    ours = os.path.dirname(os.path.abspath(HERE))
    sys.path[:] = [os.getcwd(), *(entry for entry in sys.path if entry != ours)]
    sys.argv[:] = [""]
    try:
        os.mkdir(OUT)
    except OSError:
        pass  # this is no sandbox


def prepare():
    """Does what can be done before there is code."""
    channel = Channel(CONTROL_FD)
    set_up_process()
    channel.send({"type": "ready", "python": "%d.%d.%d" % sys.version_info[:3]})
    runtime = Runtime(Host(channel), Sources())
    listen_for_the_end(runtime, channel)
    main_module = Module("__main__")
    main_module.__dict__.update(install_modules(runtime))
    sys.modules["__main__"] = main_module
    return channel, runtime


def main(prepared=None):
    channel, runtime = prepared or prepare()
    body = channel.receive()
    if body is None:
        return 1  # the host wants nothing
    return work(channel, runtime, decode(body))


# Being started ahead of the code, by oci/fork.py, which defines FORKED and calls what is here: rehearse in a template
# and in each fork, prepare in each fork, then main and ended.


def rehearse():
    """Goes the way of a run, with code that does nothing: what Python learns on the way is kept by the template, and
    the memory that is written on the way is the fork's own before it is needed.
    """
    import _socket
    for part in PARTS:
        code_of(part)
    modules, finders, argv = dict(sys.modules), list(sys.meta_path), list(sys.argv)
    host, ours = _socket.socketpair()
    try:
        channel = Channel(ours.fileno())
        runtime = Runtime(Host(channel), Sources())
        main_module = sys.modules["__main__"] = Module("__main__")
        main_module.__dict__.update(install_modules(runtime))
        awaiting = "await asyncio.sleep(0)\n" if "asyncio" in sys.modules else ""
        start = encode({"code": f"import sys\nx = [1]\nprint(end='')\n{awaiting}x and None", "servers": []})
        host.send(len(start).to_bytes(4, "big") + start)
        main((channel, runtime))
    finally:
        host.close()
        ours.close()
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]
    sys.modules.update(modules)
    sys.meta_path[:] = finders
    sys.argv[:] = argv


def ended(prepared, code):
    """Tells the host that nothing comes any more: it need not wait until the kernel has taken this process apart."""
    prepared[0].send({"type": "end", "exitCode": code})
    return True


if "FORKED" not in globals():
    sys.exit(main())
