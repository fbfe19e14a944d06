// Keeps the page fresh: one stream for all tabs of a browser says what has changed, and each tab
// asks for that by the position in the journal that it knows. Rows that are as they were stay, so
// nothing jumps, and what a person is typing is never replaced.
"use strict";
(() => {
  const body = document.body;
  if (!("position" in body.dataset)) return;
  const SOON_MS = 60, HIDDEN_MS = 3000, AGAIN_MS = 2000, AGES_MS = 10000, SAID_MS = 12000;
  let position = Number(body.dataset.position);
  let named = new Set(), timer = 0, asking = false, again = false;

  // What has changed

  const ask = (sessions, at_once) => {
    for (const one of sessions) named.add(one);
    clearTimeout(timer);
    timer = setTimeout(fetchChanges, at_once ? 0 : document.hidden ? HIDDEN_MS : SOON_MS);
  };

  const fetchChanges = async () => {
    if (asking) { again = true; return; }
    asking = true;
    const wanted = named;
    named = new Set();
    try {
      const query = new URLSearchParams(location.search);
      query.set("since", position);
      if (body.dataset.session) query.set("only", body.dataset.session);
      for (const one of wanted) query.append("session", one);
      const answer = await fetch(`/page/changes?${query}`, { cache: "no-store" });
      if (answer.status === 401) leave();
      if (!answer.ok) throw new Error(answer.status);
      const found = new DOMParser().parseFromString(await answer.text(), "text/html");
      show(found.getElementById("changes"));
    } catch {
      for (const one of wanted) named.add(one); // asked for again with the next word
    } finally {
      asking = false;
      if (again) { again = false; ask([], true); }
    }
  };

  // The login is over: what was shown is taken away, but not what somebody is writing.
  let out = false;
  const leave = () => {
    if (!isTyped(body)) { location.reload(); return; }
    out = true;
    setLive(false);
  };

  const show = (found) => {
    out = false;
    const isOver = body.dataset.session && !found.dataset.order;
    if (isOver && !isTyped(body)) { location.reload(); return; } // its story stays, on another page
    const before = new Set([...document.querySelectorAll("#needs > li")].map((item) => item.dataset.key));
    const needs = [...found.querySelectorAll("#needs > li")];
    reconcile(document.getElementById("needs"), needs, needs.map((item) => item.dataset.key));
    reconcile(document.getElementById("rows"), [...found.querySelectorAll("#rows > li")], found.dataset.order.split(" "));
    count(found, needs.length);
    const notes = document.getElementById("notes"), other = found.querySelector("#notes");
    if (notes && notes.innerHTML !== other.innerHTML) notes.replaceWith(other);
    tell(needs.filter((item) => !before.has(item.dataset.key)));
    position = Number(found.dataset.position);
    body.dispatchEvent(new CustomEvent("sm-changed"));
  };

  const reconcile = (list, items, order) => {
    if (!list) return;
    const there = new Map([...list.children].map((item) => [item.dataset.key, item]));
    const wanted = new Set(order);
    for (const [key, item] of there) if (!wanted.has(key) && !isTyped(item)) { item.remove(); there.delete(key); }
    for (const item of items) {
      const old = there.get(item.dataset.key);
      if (!old) insert(list, item, order);
      else if (old.dataset.version !== item.dataset.version && !isTyped(old)) replace(old, item);
    }
  };

  const insert = (list, item, order) => {
    const behind = order.slice(order.indexOf(item.dataset.key) + 1);
    const next = behind.map((key) => find(list, key)).find(Boolean) || null;
    list.insertBefore(item, next);
    revive(item);
  };

  const find = (list, key) => [...list.children].find((item) => item.dataset.key === key);

  const FOCUSABLE = "a[href], button, summary, textarea, input:not([type=hidden])";
  const replace = (old, item) => {
    const at = [...old.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
    old.replaceWith(item);
    revive(item);
    if (at >= 0) [...item.querySelectorAll(FOCUSABLE)][at]?.focus({ preventScroll: true });
  };

  const revive = (item) => {
    item.classList.add("fresh");
    window.htmx?.process(item);
  };

  // Words that are not sent yet, or a form that somebody has opened.
  const isTyped = (item) =>
    [...item.querySelectorAll("textarea")].some((box) => box.value.trim() || box === document.activeElement) ||
    item.querySelector("details.later[open]") !== null;

  const count = (found, needs) => {
    const set = (id, text) => { const at = document.getElementById(id); if (at) at.textContent = text; };
    set("needs-count", needs);
    set("rows-count", found.dataset.rows);
    for (const one of found.querySelectorAll("[data-group]")) {
      const at = document.querySelector(`#filter [data-group="${one.dataset.group}"]`);
      if (at) at.textContent = one.textContent;
    }
    const empty = document.getElementById("no-rows");
    if (empty) empty.hidden = document.querySelector("#rows > li") !== null;
    const none = document.getElementById("no-needs");
    if (none) { none.hidden = needs > 0; document.title = needs ? `(${needs}) sm` : "sm"; }
  };

  const tell = (fresh) => {
    const names = fresh.map((item) => item.querySelector("h3").textContent.trim().replace(/\s+/g, " "));
    if (names.length) document.getElementById("news").textContent = `Needs you: ${names.join("; ")}`;
  };

  // The stream, which one tab holds for all

  const live = document.getElementById("live");
  const setLive = (on) => {
    live.className = on ? "live on" : "live off";
    live.textContent = on ? "live" : out ? "logged out" : "not connected";
    body.dataset.live = on ? "on" : "off";
  };
  const channel = "BroadcastChannel" in window ? new BroadcastChannel("sm-page") : null;
  let source = null;

  const hear = (word) => {
    if (word.what === "changed") { setLive(true); ask(word.sessions, false); }
    else if (word.what === "live") { setLive(word.on); if (word.on) ask([], false); }
    else if (word.what === "hello" && source) say({ what: "live", on: source.readyState === EventSource.OPEN });
  };
  const say = (word) => channel?.postMessage(word);
  const both = (word) => { say(word); hear(word); };

  const open = () => {
    source = new EventSource(`/page/stream?since=${position}`);
    body.dataset.leads = "yes";
    source.addEventListener("open", () => both({ what: "live", on: true }));
    source.addEventListener("changed", (event) => both({ what: "changed", sessions: JSON.parse(event.data).sessions }));
    source.addEventListener("error", () => {
      both({ what: "live", on: false });
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(open, AGAIN_MS);
      ask([], true); // perhaps the login is over
    });
  };

  if (channel) channel.onmessage = (event) => hear(event.data);
  // Browsers offer locks to safe places alone: elsewhere each tab has a stream of its own.
  if (channel && navigator.locks) {
    navigator.locks.request("sm-page-stream", () => { open(); return new Promise(() => {}); });
    say({ what: "hello" });
  } else open();
  addEventListener("pagehide", () => source?.close());
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask([], true); });

  // Ages, as the program gives them

  const UNITS = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  const format = (age) => {
    const whole = Math.max(0, Math.floor(age));
    if (whole >= 86400 && whole < 2 * 86400) return `${Math.floor(whole / 3600)}h`;
    const [unit, size] = UNITS.find(([, least]) => whole >= least) || UNITS[3];
    return `${Math.floor(whole / size)}${unit}`;
  };
  const showAges = () => {
    if (document.hidden) return;
    for (const at of document.querySelectorAll("time[data-at]")) {
      const age = format(Date.now() / 1000 - Number(at.dataset.at));
      if (at.textContent !== age) at.textContent = age;
    }
  };
  showAges();
  setInterval(showAges, AGES_MS);

  // What a form has led to

  const said = document.getElementById("said");
  let fading = 0;
  body.addEventListener("htmx:afterRequest", (event) => {
    const form = event.detail.elt;
    if (!form.matches?.(".offer")) return;
    if (!event.detail.successful) said.textContent = "That could not be sent: the server does not answer.";
    clearTimeout(fading);
    if (said.querySelector("[data-done]")) {
      form.reset();
      form.closest("details")?.removeAttribute("open");
      if (form.contains(document.activeElement)) document.activeElement.blur();
      fading = setTimeout(() => { said.textContent = ""; }, SAID_MS);
      ask([form.elements.session.value].filter(Boolean), true);
    }
  });

  // The end of a log is where it failed

  body.addEventListener("htmx:afterSwap", (event) => {
    for (const log of event.target.querySelectorAll("pre.log")) log.scrollTop = log.scrollHeight;
  });

  // A link such as #changes leads to a part that is closed at first

  const openMeant = () => {
    const meant = /^#\w+$/.test(location.hash) && document.querySelector(location.hash);
    if (meant && meant.matches("details")) { meant.open = true; meant.scrollIntoView(); }
  };
  addEventListener("hashchange", openMeant);
  addEventListener("load", openMeant);

  // Keys

  document.addEventListener("keydown", (event) => {
    const writes = event.target.matches?.("input:not([type=radio]), textarea, select");
    if (event.key === "Escape" && writes) { event.target.blur(); return; }
    if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") focus(event, document.getElementById("q"));
    if (event.key === "!") focus(event, document.querySelector("#needs textarea, #needs button, #needs a"));
  });
  const focus = (event, at) => {
    if (!at) return;
    event.preventDefault();
    at.focus();
    at.scrollIntoView({ block: "center" });
  };
})();
