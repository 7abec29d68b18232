// The desk takes over from the plain form: the next comment is there before it is wanted, decisions
// travel in the background, and this tab remembers what it holds.
import { openDialog, openPalette } from "./palette.js";
import { post, refreshed, use } from "./wire.js";

const HELD = 2; // the comment shown and the next
const SETTLE_MS = { key: 250, click: 500 }; // whoever decides sooner has pressed twice
const HEARTBEAT_MS = 60_000;
const LOOK_AGAIN_MS = 20_000;
const UNDO_WAITS_MS = 3_000; // for the server to confirm what is to be taken back
const MOST = 5; // items that the server takes in one request

const $ = (selector, root = document) => root.querySelector(selector);
const main = $("main.desk"), here = $("#here"), empty = $("#empty"), toast = $("#toast");
const offline = $("#offline"), words = $("#words").dataset;
const mine = `modwatch.${main.dataset.person}.`;
const ask = main.dataset.ask === "1";

const figures = new Intl.NumberFormat(document.documentElement.lang);

let held = []; // the sheets of this tab; the first is shown
let unsent = []; // decisions that the server has not confirmed
const made = []; // decisions that may be taken back, the last at the end
let shownAt = 0, readFor = 0, readSince = 0, filling = false, lookAgain = 0;
let busy = true; // until the sheet that comes first is shown

const recall = (name, other) => JSON.parse(sessionStorage.getItem(mine + name) ?? "null") ?? other;
const keep = (name, value) => sessionStorage.setItem(mine + name, JSON.stringify(value));
const lease = ({ dataset: d }) => ({ item_id: +d.item, lease_token: d.token, ticket: d.ticket });

function remember() {
  keep("held", held.map(lease));
  keep("unsent", unsent.map(({ item, body, key, what }) => ({ item, body, key, what })));
}

// ---- what is shown

function show({ quietly = false } = {}) {
  const sheet = held[0];
  here.replaceChildren(...(sheet ? [sheet] : []));
  empty.hidden = Boolean(sheet) || filling;
  shownAt = performance.now();
  readFor = 0;
  readSince = shownAt;
  if (quietly) return;
  window.scrollTo(0, 0);
  const target = sheet ? $("[data-masked] .reveal, .comment:not([inert])", here) : $("h2", empty);
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
  const dismiss = button(words.dismiss, () => { toast.replaceChildren(); focusComment(); });
  toast.replaceChildren(line, ...(undo ? [button(words.undo, takeBack)] : []), dismiss);
}

const focusComment = () => $(".comment:not([inert]), .reveal", here)?.focus({ preventScroll: true });

function tellUnsent(over = false) {
  const waiting = unsent.filter((each) => each.tries).length;
  offline.hidden = !waiting && !over;
  offline.textContent = over ? words.ended : words.offline.replace("{n}", waiting);
}

// ---- deciding

function decide(verdict, how = "key") {
  const sheet = held[0];
  if (!sheet || busy || performance.now() - shownAt < SETTLE_MS[how]) return;
  const [word, more] = verdict.split(":");
  const label = { 0: 0, 1: 1 }[word];
  const body = {
    lease_token: sheet.dataset.token,
    version: +sheet.dataset.version,
    action: label === undefined ? word : "label",
    seconds: Math.round(readFor + performance.now() - readSince) / 1000,
    note: $("textarea", sheet).value.trim() || null,
    ...(label === undefined ? { reason: more ?? null } : { label, policy_code: more ?? null }),
  };
  held.shift();
  show();
  const decision = { item: sheet.dataset.item, key: sheet.dataset.key, body, what: named(verdict) };
  unsent.push(decision);
  decision.sent = send(decision);
  made.push(decision);
  if (made.length > 20) made.shift();
  say(words.done.replace("{what}", decision.what), { undo: true });
  remember();
  fill();
  care(label === 1 && !sheet.dataset.seen);
}

const NAMES = { 0: "fine", 1: "toxic", skip: "skip", escalate: "escalate" };

function named(verdict) {
  const option = $(`#commands [data-verdict="${CSS.escape(verdict)}"]`) ?? $(`#do-${NAMES[verdict]}`);
  return option.firstChild.textContent.trim();
}

// Whether the person may have to log in again.
const ended = (answer) => [401, 403].includes(answer?.status);

// Whether the server has refused or confirmed, and not only put off.
const final = (answer) => answer && !ended(answer) && answer.status !== 429 && answer.status < 500;

// Until the server has answered: the key makes sure that it is decided once.
async function send(decision) {
  const path = `api/v1/items/${decision.item}/decisions`;
  for (decision.tries = 0; ;) {
    const answer = await post(path, decision.body, { "Idempotency-Key": decision.key });
    if (final(answer)) {
      unsent = unsent.filter((each) => each !== decision);
      remember();
      tellUnsent();
      if (answer.ok) return (await answer.json()).id;
      const at = made.indexOf(decision); // nowhere, if it was made before a reload
      if (at >= 0) made.splice(at, 1);
      say([404, 409].includes(answer.status) ? words.conflict : words.refused);
      return null;
    }
    decision.tries += 1;
    tellUnsent(ended(answer));
    await pause(Math.min(30_000, 500 * 2 ** decision.tries));
    if (answer?.status === 401) await refreshed();
  }
}

// A while, or until there is a network again.
const pause = (ms) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  window.addEventListener("online", () => { clearTimeout(timer); resolve(); }, { once: true });
});

const later = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

async function takeBack() {
  const decision = made.at(-1);
  if (!decision || busy) return decision ? undefined : say(words.nothing);
  if (decision.tries && unsent.includes(decision)) return tellUnsent();
  busy = true;
  try {
    const id = await Promise.race([decision.sent, later(UNDO_WAITS_MS)]);
    if (id === undefined) {
      decision.tries ||= 1; // as good as failed
      return tellUnsent();
    }
    const answer = id && await post("undo", new URLSearchParams({ decision_id: id, csrf: "" }));
    if (answer?.status === 409 || answer?.status === 404 || answer?.ok) made.pop();
    if (ended(answer)) return tellUnsent(true);
    if (id && (!answer || answer.status === 429 || answer.status >= 500)) return say(words.unreached);
    if (!answer?.ok) return say(words.late);
    held.unshift(...sheets(await answer.text()));
    say(words.undone);
    show();
    remember();
  } finally {
    busy = false;
  }
}

// ---- holding

function sheets(html) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  return [...parsed.querySelectorAll(".sheet")].map((sheet) => document.adoptNode(sheet));
}

// What the tab remembers comes first, in its order; but a comment just taken back before everything.
async function fill(remembered = [], own = 9) {
  const count = HELD - held.length;
  if (filling || (count <= 0 && !remembered.length)) return;
  filling = true;
  clearTimeout(lookAgain);
  const answer = await post("next", { held: remembered, count: Math.max(0, count) });
  filling = false;
  const found = answer?.ok ? sheets(await answer.text()) : [];
  answer?.headers.get("X-Modwatch-Counts")?.split(" ").forEach((n, place) => {
    $(["#waiting", "#leased"][place]).textContent = figures.format(n);
  });
  const newer = new Set(found.map((sheet) => sheet.dataset.item)); // their leases hold, older do not
  held = [...held.filter((sheet) => !newer.has(sheet.dataset.item)), ...found];
  const place = new Map(remembered.map((each, n) => [`${each.item_id}`, n]));
  const rank = (sheet) => place.get(sheet.dataset.item) ?? own;
  held.sort((one, other) => rank(one) - rank(other));
  if (here.firstElementChild !== (held[0] ?? null)) show();
  else empty.hidden = Boolean(held.length);
  tellUnsent(ended(answer));
  if (held.length < HELD) lookAgain = setTimeout(fill, answer?.ok ? LOOK_AGAIN_MS : 3_000);
  remember();
}

async function extend() {
  if (document.visibilityState !== "visible") return;
  for (const sheet of [...held]) {
    const body = { lease_token: sheet.dataset.token };
    const answer = await post(`api/v1/items/${sheet.dataset.item}/lease`, body, {}, "PUT");
    if (![404, 409].includes(answer?.status) || !held.includes(sheet)) continue;
    const shown = sheet === held[0];
    held = held.filter((each) => each !== sheet);
    if (shown) { show(); say(words.conflict); }
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

// ---- looking after the person

const today = `${mine}revealed.${new Date().toDateString()}`;
let hard = +main.dataset.toxic + +(localStorage.getItem(today) ?? 0);
let worked = recall("worked", 0), lastInput = Date.now();

function reveal() {
  const sheet = held[0], cover = sheet && $(".reveal", sheet);
  if (!cover || !main.classList.contains("ready")) return;
  const hidden = sheet.toggleAttribute("data-masked");
  for (const text of sheet.querySelectorAll(".text")) {
    text.inert = hidden;
    if (hidden) text.setAttribute("aria-hidden", "true"); else text.removeAttribute("aria-hidden");
  }
  cover.hidden = !hidden;
  focusComment();
  if (hidden || sheet.dataset.seen) return;
  sheet.dataset.seen = "1";
  localStorage.setItem(today, +(localStorage.getItem(today) ?? 0) + 1);
  care(true);
}

// Nothing of this leaves the browser.
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
  if (idle > 300_000) worked = 0; // that was a break
  else if (document.visibilityState === "visible") worked += 5;
  keep("worked", worked);
}, 5_000);

// ---- keys, buttons, comings and goings

const choose = (name) => openPalette({ only: name, then: (option) => decide(option.dataset.verdict) });

const actions = {
  fine: (how) => decide("0", how),
  toxic: (how, asks = ask) => (asks ? choose("toxic") : decide("1", how)),
  skip: (how, asks = ask) => (asks ? choose("skip") : decide("skip", how)),
  escalate: (how, asks = ask) => (asks ? choose("escalate") : decide("escalate", how)),
  undo: takeBack,
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
if (undone) history.replaceState(null, "", location.pathname); // a reload takes nothing back
await (before.length ? fill(before, undone ? -1 : 9) : (show({ quietly: true }), remember()));
main.classList.add("ready");
busy = false;
readFor = 0;
shownAt = readSince = performance.now();
focusComment();
fill();
setInterval(extend, HEARTBEAT_MS);
