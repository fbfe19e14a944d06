// Keeps the page fresh: one stream for all tabs of a browser says what has changed, and each tab
// asks for that by the position in the journal that it knows. Rows that are as they were stay, so
// nothing jumps, and what a person is typing is never replaced.
"use strict";
(() => {
  const body = document.body;
  if (!("position" in body.dataset)) return;
  const SOON_MS = 60, HIDDEN_MS = 3000, AGAIN_MS = 2000, AGES_MS = 10000;
  let position = Number(body.dataset.position);
  const ALL = [""]; // whatever has changed, also what no event tells: nobody has named that to us
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
      if (answer.status === 401) endLogin();
      if (!answer.ok) throw new Error(answer.status);
      const found = new DOMParser().parseFromString(await answer.text(), "text/html");
      show(found.getElementById("changes"));
    } catch {
      for (const one of wanted) named.add(one);
      if (body.dataset.live === "on") setTimeout(() => ask([], true), AGAIN_MS); // the next word may be far
    } finally {
      asking = false;
      if (again) { again = false; ask([], true); }
    }
  };

  // The login is over: what was shown is taken away, but not what somebody is writing.
  let out = false;
  const endLogin = () => {
    if (!isTyped(body)) { location.reload(); return; }
    out = true;
    setLive(false);
  };

  const show = (found) => {
    out = false;
    if (body.dataset.session && !found.dataset.order) {
      if (!isTyped(body)) { location.reload(); return; } // its story stays, on another page
      warn("It is over. What you have typed is still here.", "/page/session/" + encodeURIComponent(body.dataset.session), "What is left of it");
    }
    renew(found.dataset.pledge);
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

  // What forms carry belongs to a login: after another one, words that are typed here can still be sent.
  let pledge = body.dataset.pledge;
  const renew = (now) => {
    if (now === pledge) return;
    if (!now) warn("Your login is over. What you have typed stays here.", "/page/login", "Log in, in another tab");
    else warn("");
    pledge = now;
    for (const box of document.querySelectorAll("input[name=pledge]")) box.value = now;
    for (const part of document.querySelectorAll("main [data-pledge]")) part.dataset.pledge = now;
  };

  const warning = document.getElementById("warning");
  const warn = (text, link, label) => {
    if (warning.dataset.text === text) return;
    warning.dataset.text = text;
    warning.hidden = !text;
    warning.textContent = text ? `${text} ` : "";
    if (!text) return;
    const way = Object.assign(document.createElement("a"), { href: link, textContent: label, target: "_blank", rel: "noopener" });
    warning.append(way);
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
    [...item.querySelectorAll("textarea, .offer input:not([type=hidden])")].some(
      (box) => box.value.trim() !== box.defaultValue || box === document.activeElement,
    ) ||
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

  // The stream, which one tab holds for all. Whoever holds the lock leads. A leading tab that is frozen
  // keeps its lock and says nothing: then a tab that is looked at takes it away.

  const live = document.getElementById("live");
  const setLive = (on) => {
    live.className = on ? "live on" : "live off";
    live.textContent = on ? "live" : out ? "logged out" : "not connected";
    body.dataset.live = on ? "on" : "off";
  };
  const channel = "BroadcastChannel" in window ? new BroadcastChannel("sm-page") : null;
  const LOCK = "sm-page-stream", BEAT_MS = 5000, SILENT_MS = 12000, LONGEST_MS = 30000;
  let source = null, pause = AGAIN_MS, waiting = null, heard = performance.now();

  const hear = (word) => {
    heard = performance.now();
    if (word.what === "changed") { setLive(true); ask(word.sessions, false); }
    else if (word.what === "live") {
      const was_off = body.dataset.live === "off";
      setLive(word.on);
      if (word.on) ask(was_off ? ALL : [], false);
    } else if (word.what === "look") ask(ALL, true);
    else if (word.what === "hello" && source) say({ what: "live", on: source.readyState === EventSource.OPEN });
  };
  const say = (word) => channel?.postMessage(word);
  const both = (word) => { say(word); hear(word); };

  const open = () => {
    letGo();
    body.dataset.leads = "yes";
    const mine = source = new EventSource(`/page/stream?since=${position}`);
    mine.addEventListener("open", () => { pause = AGAIN_MS; both({ what: "live", on: true }); });
    mine.addEventListener("changed", (event) => both({ what: "changed", sessions: JSON.parse(event.data).sessions }));
    mine.addEventListener("error", () => {
      both({ what: "live", on: false });
      if (mine !== source || mine.readyState !== EventSource.CLOSED) return; // it connects again by itself
      both({ what: "look" }); // the server is there, and has no stream for us: the page is looked up instead
      setTimeout(() => { if (mine === source) open(); }, pause);
      pause = Math.min(2 * pause, LONGEST_MS);
    });
  };
  const letGo = () => { source?.close(); source = null; delete body.dataset.leads; };

  const hold = () => { open(); return new Promise(() => {}); };
  const queue = () => {
    waiting = new AbortController();
    navigator.locks.request(LOCK, { signal: waiting.signal }, hold).catch(lose);
  };
  const steal = () => {
    waiting?.abort("taken");
    navigator.locks.request(LOCK, { steal: true }, hold).catch(lose);
  };
  const lose = (why) => { if (why !== "taken") { letGo(); queue(); say({ what: "hello" }); } };

  const watch = () => {
    if (source) say({ what: "beat" });
    else if (!document.hidden && performance.now() - heard > SILENT_MS) { heard = performance.now(); steal(); }
  };

  if (channel) channel.onmessage = (event) => hear(event.data);
  // Browsers offer locks to safe places alone: elsewhere each tab has a stream of its own.
  if (channel && navigator.locks) {
    queue();
    say({ what: "hello" });
    setInterval(watch, BEAT_MS);
  } else open();

  const wake = (missed) => { ask(missed, true); if (channel && navigator.locks) watch(); };
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) { if (source) open(); wake(ALL); } });
  document.addEventListener("resume", () => wake(ALL));
  document.addEventListener("visibilitychange", () => { if (!document.hidden) wake([]); });
  body.addEventListener("sm-look", (event) => ask(event.detail, true));

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
})();
