"""Plan a day: fit the open tasks into the free time of the calendar."""
import asyncio
import time
from datetime import datetime, timedelta

from mcp import runtime

DAY = "2026-11-24"  # a Tuesday of the sample week

stages = []  # (name, milliseconds)
clock = time.perf_counter()


def done(stage):
    global clock
    now = time.perf_counter()
    stages.append((stage, (now - clock) * 1000))
    clock = now


print("servers:", ", ".join(sorted(await runtime.discovered_servers())))
done("discover the servers")

for question in ("when am I free", "list my open tasks"):
    best = (await runtime.search_tool_docs(question, limit=1))[0]
    print(f"{question}? -> {best['server']}.{best['tool']}")
done("search their tools")

free, todo = await asyncio.gather(
    mcp_calendar.free_slots(date=DAY, min_minutes=15),
    mcp_tasks.list_tasks(open_only=True),
)
done("call both in parallel")

# The most important task first, into the first gap that holds it.
gaps = [[datetime.fromisoformat(s["start"]), s["minutes"]] for s in free["slots"]]
total = sum(minutes for _, minutes in gaps)
plan, left_over = [], []
for task in sorted(todo["tasks"], key=lambda t: (t.get("priority", "Z"), t.get("due", "9999"), t["line"])):
    need = task.get("minutes", 30)
    gap = next((g for g in gaps if g[1] >= need), None)
    if gap is None:
        left_over.append(task["title"])
        continue
    plan.append((gap[0], need, task))
    gap[0] += timedelta(minutes=need)
    gap[1] -= need

print(f"\nPlan for {DAY}: {sum(p[1] for p in plan)} of {total} free minutes")
for start, need, task in sorted(plan, key=lambda p: p[0]):
    due = "  (due today)" if task.get("due") == DAY else ""
    print(f"  {start:%H:%M}  {need:3} min  [{task.get('priority', '-')}] {task['title']}{due}")
for title in left_over:
    print(f"  no room  {title}")
done("make the plan")

for name, ms in stages:
    print(f"stage: {name} = {ms:.1f} ms")
