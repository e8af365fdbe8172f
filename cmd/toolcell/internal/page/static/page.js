"use strict";
// Pages are made by the server. This asks for the page anew when something has changed, and puts what
// changes in the place of what is there, unless the user types in it or has selected some of it.
async function renew() {
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const selected = getSelection();
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    const typing = part.contains(document.activeElement) && document.activeElement.matches("input");
    const reading = selected && !selected.isCollapsed && part.contains(selected.anchorNode);
    if (!other || other.innerHTML === part.innerHTML || typing || reading) continue;
    const id = document.activeElement && document.activeElement.id;
    part.replaceWith(other);
    if (id && !document.activeElement.id) document.getElementById(id)?.focus();
  }
  document.title = fresh.title;
}
if (document.querySelector("[data-live]")) {
  new EventSource("/events").onmessage = () => renew().catch(() => {});
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
});
