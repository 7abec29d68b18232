// The command palette: a combobox over a list, after the ARIA practices.
const dialog = document.getElementById("palette");
const input = dialog.querySelector("input");
const list = dialog.querySelector("[role=listbox]");
const status = dialog.querySelector("[role=status]");
const found = document.getElementById("messages").dataset.found;
const options = [...list.children];

let current = null, group = null, chosen = () => {};

export function openDialog(element, closed = () => {}) {
  element.returnValue = "";
  element.addEventListener("close", closed, { once: true });
  element.showModal();
}

export function openPalette({ only = null, then }) {
  group = only;
  chosen = then;
  input.value = "";
  openDialog(dialog);
  filter();
  input.focus();
}

function filter() {
  const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const option of options) {
    const text = option.textContent.toLowerCase();
    const fits = !group || option.dataset.of === group;
    option.hidden = !fits || !wanted.every((word) => text.includes(word));
  }
  const visible = shown();
  status.textContent = found.replace("{n}", visible.length);
  point(visible[0]);
}

const shown = () => options.filter((option) => !option.hidden);

function point(option) {
  current?.setAttribute("aria-selected", "false");
  current = option ?? null;
  current?.setAttribute("aria-selected", "true");
  current?.scrollIntoView({ block: "nearest" });
  if (current) input.setAttribute("aria-activedescendant", current.id);
  else input.removeAttribute("aria-activedescendant");
}

function choose(option) {
  if (!option) return;
  dialog.close();
  chosen(option);
}

input.addEventListener("input", filter);
input.addEventListener("keydown", (event) => {
  const visible = shown(), at = visible.indexOf(current);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1 + visible.length }[event.key];
  if (to !== undefined) point(visible[to % visible.length]);
  else if (event.key === "Enter" && !event.isComposing) choose(current);
  else return;
  event.preventDefault();
});
list.addEventListener("click", (event) => choose(event.target.closest("[role=option]")));
