// The review page with scripts: leases the next comment in advance, sends decisions in the background,
// and remembers the tab's leases across reloads.
import { openDialog, openPalette } from "./palette.js";
import { post, refreshed, use } from "./requests.js";

const HELD = 2; // leases: the current comment and the next
const SETTLE_MS = { key: 250, click: 500 }; // an earlier key or click is a double press
const HEARTBEAT_MS = 60_000;
const POLL_MS = 20_000;
const UNDO_WAITS_MS = 3_000; // for the server to confirm the decision
const MOST = 5; // leases that one request may contain

const $ = (selector, root = document) => root.querySelector(selector);
const main = $("main.desk"), here = $("#here"), empty = $("#empty"), toast = $("#toast");
const offline = $("#offline"), messages = $("#messages").dataset;
const mine = `modwatch.${main.dataset.person}.`;
const ask = main.dataset.ask === "1";

const numbers = new Intl.NumberFormat(document.documentElement.lang);

let held = []; // item cards of this tab; the first is visible
let unsent = []; // decisions without confirmation by the server
const made = []; // decisions that can be undone, the latest last
let shownAt = 0, readFor = 0, readSince = 0, filling = false, pollTimer = 0;
let busy = true; // until the first card is visible
let filled = true; // whether the server answered the last request for comments

const recall = (name, other) => JSON.parse(sessionStorage.getItem(mine + name) ?? "null") ?? other;
const keep = (name, value) => sessionStorage.setItem(mine + name, JSON.stringify(value));
const lease = ({ dataset: d }) => ({ item_id: +d.item, lease_token: d.token });

function remember() {
  keep("held", held.map(lease));
  keep("unsent", unsent.map(({ item, body, key, what }) => ({ item, body, key, what })));
}

// ---- display

function show({ quietly = false } = {}) {
  const card = held[0];
  here.replaceChildren(...(card ? [card] : []));
  empty.hidden = Boolean(card) || filling || !filled;
  shownAt = performance.now();
  readFor = 0;
  readSince = shownAt;
  if (quietly) return;
  window.scrollTo(0, 0);
  const target = card ? $("[data-masked] .reveal, .comment:not([inert])", here) : $("h2", empty);
  target?.focus({ preventScroll: true });
}

function say(text, { undo = false } = {}) {
  const line = document.createElement("p");
  line.textContent = text;
  const button = (label, act) => {
    const element = document.createElement("button");
    Object.assign(element, { type: "button", textContent: label, className: "plain" });
    element.addEventListener("click", act);
    return element;
  };
  const dismiss = button(messages.dismiss, () => { toast.replaceChildren(); focusComment(); });
  toast.replaceChildren(line, ...(undo ? [button(messages.undo, undoLast)] : []), dismiss);
}

const focusComment = () => $(".comment:not([inert]), .reveal", here)?.focus({ preventScroll: true });

function showUnsent(over = false) {
  const waiting = unsent.filter((each) => each.tries).length;
  const unloaded = !filled && !held.length;
  offline.hidden = !waiting && !over && !unloaded;
  offline.textContent = over ? messages.ended
    : waiting ? messages.offline.replace("{n}", waiting) : messages.unloaded;
}

// ---- decisions

function decide(verdict, how = "key") {
  const card = held[0];
  if (!card || busy || performance.now() - shownAt < SETTLE_MS[how]) return;
  const [word, more] = verdict.split(":");
  const label = { 0: 0, 1: 1 }[word];
  const body = {
    lease_token: card.dataset.token,
    version: +card.dataset.version,
    action: label === undefined ? word : "label",
    seconds: Math.round(readFor + performance.now() - readSince) / 1000,
    note: $("textarea", card).value.trim() || null,
    ...(label === undefined ? { reason: more ?? null } : { label, policy_code: more ?? null }),
  };
  held.shift();
  show();
  const decision = { item: card.dataset.item, key: card.dataset.key, body, what: named(verdict) };
  unsent.push(decision);
  decision.sent = send(decision);
  const undo = word !== "skip";
  if (undo) made.push(decision);
  if (made.length > 20) made.shift();
  say(messages.done.replace("{what}", decision.what), { undo });
  remember();
  fill();
  care(label === 1 && !card.dataset.seen);
}

const NAMES = { 0: "fine", 1: "toxic", skip: "skip", escalate: "escalate" };

function named(verdict) {
  const option = $(`#commands [data-verdict="${CSS.escape(verdict)}"]`) ?? $(`#do-${NAMES[verdict]}`);
  return option.firstChild.textContent.trim();
}

// Whether the session may have expired.
const ended = (answer) => [401, 403].includes(answer?.status);

// Whether the server has accepted or rejected for good.
// The limits of an hour, which have a Retry-After, last too long to retry.
const final = (answer) => answer && !ended(answer) && answer.status < 500
  && (answer.status !== 429 || answer.headers.has("Retry-After"));

// Retries until the server has answered; the idempotency key prevents a second decision.
async function send(decision) {
  const path = `api/v1/items/${decision.item}/decisions`;
  for (decision.tries = 0; ;) {
    const answer = await post(path, decision.body, { "Idempotency-Key": decision.key });
    if (final(answer)) {
      unsent = unsent.filter((each) => each !== decision);
      remember();
      showUnsent();
      if (answer.ok) return (await answer.json()).id;
      const at = made.indexOf(decision); // -1 if made before a reload
      if (at >= 0) made.splice(at, 1);
      say([404, 409].includes(answer.status) ? messages.conflict : messages.refused);
      return null;
    }
    decision.tries += 1;
    showUnsent(ended(answer));
    await pause(Math.min(30_000, 500 * 2 ** decision.tries));
    if (answer?.status === 401) await refreshed();
  }
}

// Resolves after a while, or once the network is back.
const pause = (ms) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  window.addEventListener("online", () => { clearTimeout(timer); resolve(); }, { once: true });
});

const later = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

async function undoLast() {
  const decision = made.at(-1);
  if (!decision || busy) return decision ? undefined : say(messages.nothing);
  if (decision.tries && unsent.includes(decision)) return showUnsent();
  busy = true;
  try {
    const id = await Promise.race([decision.sent, later(UNDO_WAITS_MS)]);
    if (id === undefined) {
      decision.tries ||= 1; // counts as failed
      return showUnsent();
    }
    const answer = id && await post("undo", new URLSearchParams({ decision_id: id, csrf: "" }));
    if (answer?.status === 409 || answer?.status === 404 || answer?.ok) made.pop();
    if (ended(answer)) return showUnsent(true);
    if (id && (!answer || answer.status === 429 || answer.status >= 500)) return say(messages.unreached);
    if (!answer?.ok) return say(messages.late);
    held.unshift(...itemCards(await answer.text()));
    say(messages.undone);
    show();
    remember();
  } finally {
    busy = false;
  }
}

// ---- leases

function itemCards(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  return [...parsed.querySelectorAll(".sheet")].map((card) => document.adoptNode(card));
}

// Remembered items come first, in their order; a comment just undone comes before them.
async function fill(remembered = [], own = 9) {
  const count = HELD - held.length;
  if (filling || (count <= 0 && !remembered.length)) return;
  filling = true;
  clearTimeout(pollTimer);
  const answer = await post("next", { held: remembered, count: Math.max(0, count) });
  filling = false;
  filled = Boolean(answer?.ok);
  const found = answer?.ok ? itemCards(await answer.text()) : [];
  answer?.headers.get("X-Modwatch-Counts")?.split(" ").forEach((n, place) => {
    $(["#waiting", "#leased"][place]).textContent = numbers.format(n);
  });
  const newer = new Set(found.map((card) => card.dataset.item)); // their older leases are invalid
  held = [...held.filter((card) => !newer.has(card.dataset.item)), ...found];
  const place = new Map(remembered.map((each, n) => [`${each.item_id}`, n]));
  const rank = (card) => place.get(card.dataset.item) ?? own;
  held.sort((one, other) => rank(one) - rank(other));
  if (here.firstElementChild !== (held[0] ?? null)) show();
  else empty.hidden = Boolean(held.length) || !filled;
  showUnsent(ended(answer));
  if (held.length < HELD) pollTimer = setTimeout(fill, answer?.ok ? POLL_MS : 3_000);
  remember();
}

async function extend() {
  if (document.visibilityState !== "visible") return;
  for (const card of [...held]) {
    const token = { "X-Lease-Token": card.dataset.token };
    const answer = await post(`api/v1/items/${card.dataset.item}/lease`, {}, token, "PUT");
    if (![404, 409].includes(answer?.status) || !held.includes(card)) continue;
    const shown = card === held[0];
    held = held.filter((each) => each !== card);
    if (shown) { show(); say(messages.conflict); }
    fill();
  }
}

function leave() {
  remember();
  const last = (path, body, headers) => post(path, body, headers, "POST", true);
  for (const each of unsent) {
    last(`api/v1/items/${each.item}/decisions`, each.body, { "Idempotency-Key": each.key });
  }
  for (let n = 0; n < held.length; n += MOST) {
    last("leave", { held: held.slice(n, n + MOST).map(lease) });
  }
}

// ---- well-being

const today = `${mine}revealed.${new Date().toDateString()}`;
let hard = +main.dataset.toxic + +(localStorage.getItem(today) ?? 0);
let worked = recall("worked", 0), lastInput = Date.now();

function reveal() {
  const card = held[0], cover = card && $(".reveal", card);
  if (!cover || !main.classList.contains("ready")) return;
  const hidden = card.toggleAttribute("data-masked");
  for (const text of card.querySelectorAll(".text")) {
    text.inert = hidden;
    if (hidden) text.setAttribute("aria-hidden", "true"); else text.removeAttribute("aria-hidden");
  }
  cover.hidden = !hidden;
  focusComment();
  if (hidden || card.dataset.seen) return;
  card.dataset.seen = "1";
  localStorage.setItem(today, +(localStorage.getItem(today) ?? 0) + 1);
  care(true);
}

// None of this leaves the browser.
function care(wasHard) {
  const { budget, break: minutes } = main.dataset;
  hard += wasHard ? 1 : 0;
  const over = hard - budget;
  if (budget && wasHard && over >= 0 && over % 10 === 0) return rest("budget");
  if (minutes && worked >= minutes * 60) { worked = 0; rest("break"); }
}

function rest(why) {
  const dialog = $("#pause");
  for (const text of dialog.querySelectorAll("[data-for]")) text.hidden = text.dataset.for !== why;
  openDialog(dialog, () => {
    if (dialog.returnValue === "stop") location.assign("./day");
    shownAt = readSince = performance.now();
    focusComment();
  });
}

setInterval(() => {
  const idle = Date.now() - lastInput;
  if (idle > 300_000) worked = 0; // counts as a break
  else if (document.visibilityState === "visible") worked += 5;
  keep("worked", worked);
}, 5_000);

// ---- keyboard, buttons, page lifecycle

const choose = (name) => openPalette({ only: name, then: (option) => decide(option.dataset.verdict) });

const actions = {
  fine: (how) => decide("0", how),
  toxic: (how, asks = ask) => (asks ? choose("toxic") : decide("1", how)),
  skip: (how, asks = ask) => (asks ? choose("skip") : decide("skip", how)),
  escalate: (how, asks = ask) => (asks ? choose("escalate") : decide("escalate", how)),
  undo: undoLast,
  reveal,
  note: () => {
    const more = held[0] && $(".more", held[0]);
    if (more) { more.open = true; $("textarea", more).focus(); }
  },
  help: () => openDialog($("#help"), focusComment),
  palette: () => openPalette({
    then: ({ dataset: d }) => (d.verdict ? decide(d.verdict) : actions[d.do]("key")),
  }),
};

const keys = new Map(Object.entries(main.dataset)
  .filter(([name]) => name.startsWith("key"))
  .map(([name, key]) => [key, name.slice(3).toLowerCase()]));

document.addEventListener("keydown", (event) => {
  lastInput = Date.now();
  if ($("dialog[open]")) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    if (!event.repeat) actions.palette();
    return;
  }
  if (event.target.matches("input, textarea, select")) {
    if (event.key === "Escape") focusComment();
    return;
  }
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (main.dataset.shortcuts !== "1") return;
  const code = /^\d$/.test(event.key) && $(`[data-digit="${event.key}"]`, here);
  const name = keys.get(event.key) ?? keys.get(event.key.toLowerCase());
  if (!code && !name) return;
  event.preventDefault();
  if (code) decide(code.value);
  else actions[name]("key", event.shiftKey && event.key !== "?" ? true : undefined);
});

document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!event.target.matches(".verdict-form")) return;
  event.preventDefault();
  const how = button.matches(":active") || event.detail ? "click" : "key";
  if (button.value === "exact") decide($("[name=exact]", event.target).value, how);
  else if (button.dataset.do) actions[button.dataset.do](how);
  else decide(button.value, "click");
});

document.addEventListener("click", (event) => {
  lastInput = Date.now();
  const button = event.target.closest(".reveal, .tools [data-do]");
  if (!button) return;
  event.preventDefault();
  actions[button.dataset.do]("click");
});

document.addEventListener("visibilitychange", () => {
  const now = performance.now();
  if (document.visibilityState === "visible") { readSince = now; extend(); }
  else { readFor += now - readSince; readSince = now; }
});

window.addEventListener("pagehide", leave);
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
window.addEventListener("beforeunload", (event) => { if (unsent.some((each) => each.tries)) event.preventDefault(); });

use(main.dataset.csrf, $("header .who bdi").textContent);
held = [...here.querySelectorAll(".sheet")];
unsent = recall("unsent", []);
for (const decision of unsent) decision.sent = send(decision);
const settled = new Set(unsent.map((each) => +each.item));
const before = recall("held", []).filter((each) => !settled.has(each.item_id)).slice(0, MOST);
const undone = new URLSearchParams(location.search).get("notice") === "undone";
if (undone) history.replaceState(null, "", location.pathname); // so that a reload does not repeat it
await (before.length ? fill(before, undone ? -1 : 9) : (show({ quietly: true }), remember()));
main.classList.add("ready");
busy = false;
readFor = 0;
shownAt = readSince = performance.now();
focusComment();
fill();
setInterval(extend, HEARTBEAT_MS);
