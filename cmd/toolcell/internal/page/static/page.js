"use strict";
// Pages are made by the server. This asks for the page anew when something has changed, and puts what
// changes in the place of what is there. What the user has typed stays, and nothing moves while some of it is
// selected.
const inputs = (part) => [...part.querySelectorAll("form input")];
const keyOf = (input) => input.form.getAttribute("action") + " " + input.name;

async function renew() {
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const selected = getSelection();
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    const reading = selected && !selected.isCollapsed && part.contains(selected.anchorNode);
    if (!other || other.innerHTML === part.innerHTML || reading) continue;
    const focused = part.contains(document.activeElement) && document.activeElement.matches("form input") ? document.activeElement : null;
    const at = focused && [keyOf(focused), focused.selectionStart, focused.selectionEnd];
    const typed = new Map(inputs(part).filter((input) => input.value !== input.defaultValue).map((input) => [keyOf(input), input.value]));
    part.replaceWith(other);
    for (const input of inputs(other)) {
      if (typed.has(keyOf(input))) input.value = typed.get(keyOf(input));
      if (at && at[0] === keyOf(input)) {
        input.focus();
        input.setSelectionRange(at[1], at[2]);
      }
    }
  }
  document.title = fresh.title;
}
// A page that is seen hears of changes. One that is not looks now and then: browsers open few connections to
// one host, and streams would take them all.
const live = document.querySelector("[data-live]");
const look = () => renew().catch(() => {});
let changes = null;
function listen() {
  if (document.hidden) {
    if (changes) changes.close();
    changes = null;
  } else if (!changes) {
    changes = new EventSource(live.dataset.live);
    changes.onopen = changes.onmessage = look; // also for what was missed before it was open
  }
}
if (live) {
  listen();
  document.addEventListener("visibilitychange", listen);
  setInterval(() => document.hidden && look(), 5000);
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
});
