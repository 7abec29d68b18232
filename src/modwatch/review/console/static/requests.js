// Requests to the server with the CSRF token of this session.
let csrf = "", person = "";

export function use(value, name) {
  csrf = value;
  person = name;
}

// Returns the response, or null without one.
export async function post(path, body, headers = {}, method = "POST", last = false) {
  const answer = await attempt(path, body, headers, method, last);
  // The person may have signed in again in another tab.
  if (answer?.status !== 403 || last) return answer;
  return (await refreshed()) ? attempt(path, body, headers, method, last) : answer;
}

// Returns whether there is a new CSRF token. If someone else has signed in meanwhile in another tab of
// this browser, this person's decisions are not sent in their name.
export async function refreshed() {
  try {
    const answer = await fetch("api/v1/me", { headers: { Accept: "application/json" } });
    const before = csrf;
    const me = answer.ok ? await answer.json() : {};
    if (me.pseudonym === person) csrf = me.csrf;
    return csrf !== before;
  } catch {
    return false;
  }
}

async function attempt(path, body, headers, method, last) {
  const form = body instanceof URLSearchParams;
  if (form) body.set("csrf", csrf);
  try {
    const answer = await fetch(path, {
      method,
      body: form ? body : JSON.stringify(body),
      headers: {
        ...(form ? {} : { "Content-Type": "application/json" }),
        "X-Modwatch-CSRF": csrf,
        "X-Modwatch-Fragment": "1",
        ...headers,
      },
      keepalive: last,
      redirect: "error",
      signal: last ? undefined : AbortSignal.timeout(15_000),
    });
    csrf = answer.headers.get("X-Modwatch-CSRF") ?? csrf;
    return answer;
  } catch {
    return null;
  }
}
