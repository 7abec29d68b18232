// One keystroke decides; a second one, or a double click, does not decide the same item again.
const form = document.getElementById("verdict");
let sent = false;

form.addEventListener("submit", (event) => {
  if (sent) event.preventDefault();
  sent = true;
});

// The browser may bring the page back as it was left.
window.addEventListener("pageshow", () => { sent = false; });

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  const button = form.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (button) {
    event.preventDefault();
    button.click();
  }
});
