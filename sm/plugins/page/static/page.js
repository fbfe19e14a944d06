// Keeps the page fresh: one stream for all tabs of a browser says what has changed, and each tab
// asks for that by the position in the journal that it knows. Rows that are as they were stay, so
// nothing jumps, and what a person is typing is never replaced. A form of a pull request is never
// moved to another commit than the one that it was shown with: it is marked as outdated instead.
"use strict";
(() => {
  const body = document.body;
  if (!("position" in body.dataset)) return;
  const SOON_MS = 60, HIDDEN_MS = 3000, AGAIN_MS = 2000, AGES_MS = 10000;
  let position = Number(body.dataset.position);
  let needsVersion = "", needKeys = []; // what needs somebody, as the server has said it last
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
      query.set("needs", needsVersion);
      if (body.dataset.session) query.set("only", body.dataset.session);
      for (const one of wanted) query.append("session", one);
      for (const diff of document.querySelectorAll(".desk:not(.outdated) .diff[open]")) query.append("session", diff.closest(".desk").dataset.session);
      const answer = await fetch(`/page/changes?${query}`, { cache: "no-store" });
      if (answer.status === 401) endLogin();
      const found = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!answer.ok) throw new Error(found.querySelector("p.bad")?.textContent || `the server answers with ${answer.status}`);
      show(found.getElementById("changes"));
      unread = null;
      hearServer();
    } catch (error) {
      if (!out && !(error instanceof TypeError)) unread ||= { at: Date.now(), why: error.message }; // a TypeError: no answer at all
      drawLive();
      for (const one of wanted) named.add(one);
      if (connected) setTimeout(() => ask([], true), AGAIN_MS); // the next word may be far
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
    drawLive();
  };

  const show = (found) => {
    out = false;
    if (body.dataset.session && !found.dataset.order) {
      if (!isTyped(body)) { location.reload(); return; } // its story stays, on another page
      warn("It is over. What you have typed is still here.", "/page/session/" + encodeURIComponent(body.dataset.session), "What is left of it");
    }
    renew(found.dataset.csrf);
    const sent = found.querySelector("#needs") !== null; // else they are as they were
    const before = new Set([...document.querySelectorAll("#needs > li")].map((item) => item.dataset.key));
    const needs = [...found.querySelectorAll("#needs > li")];
    const rows = [...found.querySelectorAll("#rows > [data-key]")];
    if (sent) inNeed = new Set(needs.map((item) => item.dataset.session));
    outdateAll([...needs, ...rows]);
    if (sent) needKeys = needs.map((item) => item.dataset.key);
    watchShift("needs", () => reconcile(document.getElementById("needs"), needs.filter(isNoNews), needKeys));
    const notes = document.getElementById("notes"), other = found.querySelector("#notes");
    if (notes && notes.innerHTML !== other.innerHTML) watchShift("notes", () => notes.replaceWith(other));
    watchShift("rows", () => {
      const list = document.getElementById("rows"), order = found.dataset.order.split(" ");
      reconcile(list, rows, order);
      if (list?.matches("tbody")) arrange(list, order);
    });
    needsVersion = found.dataset.version;
    count(found, needKeys.length);
    tell(needs.filter((item) => !before.has(item.dataset.key)));
    position = Number(found.dataset.position);
    body.dispatchEvent(new CustomEvent("sm-changed"));
  };

  // What forms carry belongs to a login: after another one, words that are typed here can still be sent.
  let csrf = body.dataset.csrf;
  const renew = (now) => {
    if (now === csrf) return;
    if (!now) warn("Your login is over. What you have typed stays here.", "/page/login", "Log in, in another tab");
    else warn("");
    csrf = now;
    for (const box of document.querySelectorAll("input[name=csrf]")) box.value = now;
    for (const part of document.querySelectorAll("main [data-csrf]")) part.dataset.csrf = now;
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
    for (const [key, item] of there) {
      if (wanted.has(key) || (isKept(item) && !hasEnded(item))) continue;
      if (isTyped(item)) settle(item);
      else { item.remove(); there.delete(key); moved = true; }
    }
    for (const item of items) {
      const old = there.get(item.dataset.key);
      if (!old) { insert(list, item, order); moved = true; }
      else if (old.dataset.version !== item.dataset.version && !isKept(old) && !isTyped(old)) replace(old, item);
    }
  };

  // A session that comes into another group moves to its place there.
  const arrange = (list, order) => {
    let at = list.firstElementChild;
    for (const key of order) {
      if (at?.dataset.key === key) { at = at.nextElementSibling; continue; }
      const item = find(list, key);
      if (!item) continue;
      list.insertBefore(item, at);
      moved = true;
    }
  };

  // What has been answered here stays in its place, and so does what is of another commit by now, for
  // as long as its session waits for anybody.
  const isOutdated = (desk) => desk.matches(".outdated");
  const isKept = (item) => item.matches(".answered") || item.querySelector(".desk.outdated") !== null;
  const hasEnded = (item) => !item.matches(".answered") && !inNeed.has(item.dataset.session);
  let inNeed = new Set(); // the sessions that need somebody
  const settle = (item) => {
    if (item.querySelector(".settled")) return;
    const note = Object.assign(document.createElement("p"), { className: "note settled", textContent: "This does not wait any more. What you have written is still here." });
    item.querySelector(".answers, .desk")?.before(note);
  };

  // Whoever clicks just after things have moved may have meant what stood there before.
  let moved = false;
  const watchShift = (id, act) => {
    const part = document.getElementById(id);
    const before = part?.offsetHeight;
    moved = false;
    act();
    const now = document.getElementById(id);
    if (now && (moved || now.offsetHeight !== before)) body.dispatchEvent(new CustomEvent("sm-shift", { detail: now }));
  };

  // A pull request that has got another commit than the one that is shown

  const newer = new Map(); // the card that takes the place of an outdated one, by its session
  const isNoNews = (item) => newer.get(item.dataset.session)?.dataset.key !== item.dataset.key;
  const outdateAll = (found) => {
    for (const desk of document.querySelectorAll(".desk[data-head]")) {
      const now = found.find((one) => (one.dataset.session || one.dataset.key) === desk.dataset.session && one.dataset.head);
      if (!now || desk.dataset.head === now.dataset.head || desk.closest(".answered")) continue;
      const isKnown = desk.dataset.seen === now.dataset.head;
      const card = now.matches(".need") ? now : null; // a row may have told of the commit before a card does
      if (card && (!isKnown || isOutdated(desk))) newer.set(desk.dataset.session, card);
      if (!isKnown) outdate(desk, "", now.dataset.head);
    }
  };

  const outdate = async (desk, words, head) => {
    desk.dataset.seen = head || desk.dataset.seen;
    let note = desk.querySelector(":scope > .moved");
    if (!note) {
      note = document.createElement("p");
      note.className = "note strong moved";
      note.setAttribute("role", "alert");
      const way = Object.assign(document.createElement("button"), { type: "button", textContent: "show it" });
      way.addEventListener("click", () => showNews(desk));
      note.append(document.createElement("span"), way);
      desk.prepend(note);
      desk.classList.add("outdated");
      body.dispatchEvent(new CustomEvent("sm-shift", { detail: desk }));
    }
    for (const button of desk.querySelectorAll(".offer button")) button.disabled = true;
    const say = (news) => { note.firstChild.textContent = `${news}: `; note.lastChild.textContent = news.startsWith("1 ") ? "show it" : "show them"; };
    say(words || "New commits");
    if (words) return;
    try {
      const answer = await fetch(`/page/session/${encodeURIComponent(desk.dataset.session)}/news?head=${desk.dataset.head}`, { cache: "no-store" });
      const news = answer.ok ? (await answer.text()).trim() : "New commits";
      if (news) say(news);
      else renewDesk(desk, note); // the look was an older one
    } catch { /* what is said already is enough */ }
  };
  const renewDesk = (desk, note) => {
    note.remove();
    newer.delete(desk.dataset.session);
    desk.classList.remove("outdated");
    for (const button of desk.querySelectorAll(".offer button")) button.disabled = false;
  };
  body.addEventListener("sm-moved", (event) => {
    const desk = event.target.closest?.(".desk");
    if (desk) setTimeout(() => outdate(desk, event.detail.value || "New commits"), 0); // htmx has enabled its button by then
  });

  const showNews = (desk) => {
    const words = new Map([...desk.querySelectorAll(".offer")].map((form) => [form.elements.act.value, form.elements.text?.value || ""]));
    const session = desk.dataset.session, card = newer.get(session), old = desk.closest(".need");
    newer.delete(session);
    if (card && old) for (const name of ["key", "version"]) old.dataset[name] = card.dataset[name];
    window.htmx.ajax("GET", `/page/session/${encodeURIComponent(session)}/desk`, { source: desk, target: desk, swap: "outerHTML" }).then(() => {
      const now = document.getElementById(`desk-${session}`);
      for (const form of now?.querySelectorAll(".offer") || []) {
        const text = words.get(form.elements.act.value);
        if (text && form.elements.text) form.elements.text.value = text;
      }
    });
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
    const pane = old.querySelector("details[open] > .pane");
    if (pane) { // what is read just now stays until there is something newer
      item.querySelector("details").open = true;
      item.querySelector(".pane").replaceWith(pane);
    }
    old.replaceWith(item);
    revive(item);
    if (pane) window.htmx.ajax("GET", `/page/need?key=${encodeURIComponent(item.dataset.key)}`, { source: pane, target: pane });
    if (at >= 0) [...item.querySelectorAll(FOCUSABLE)][at]?.focus({ preventScroll: true });
  };

  const revive = (item) => {
    item.classList.add("fresh");
    window.htmx?.process(item);
  };

  // Words that are not sent yet, a form that somebody has opened, or text that is selected.
  const isSelected = (item) => {
    const selection = getSelection();
    return !selection.isCollapsed && selection.containsNode(item, true);
  };
  const isTyped = (item) => isSelected(item) ||
    [...item.querySelectorAll("textarea, .offer input:not([type=hidden])")].some(
      (box) => box.value.trim() !== box.defaultValue || box === document.activeElement,
    ) ||
    item.querySelector("details.later[open], details.diff[open]") !== null;

  body.addEventListener("htmx:beforeSwap", (event) => {
    if (event.target.matches("#messages, #story") && isSelected(event.target)) event.detail.shouldSwap = false;
  });

  const count = (found, needs) => {
    const set = (id, text) => { const at = document.getElementById(id); if (at) at.textContent = text; };
    set("needs-count", needs);
    set("rows-count", found.dataset.rows);
    for (const one of found.querySelectorAll("[data-group]")) {
      const at = document.querySelector(`main [data-group="${one.dataset.group}"]`);
      if (at) at.textContent = one.textContent;
    }
    const empty = document.getElementById("no-rows");
    if (empty) empty.hidden = document.querySelector("#rows > [data-key]") !== null;
    const none = document.getElementById("no-needs");
    const total = Number(found.dataset.total), left_out = document.getElementById("left-out");
    if (none) { none.hidden = total > 0; document.title = total ? `(${total}) sm` : "sm"; }
    if (left_out) { left_out.hidden = total === needs; left_out.querySelector(".number").textContent = total - needs; }
  };

  const tell = (fresh) => {
    const names = fresh.map((item) => item.querySelector(".who").textContent.trim().replace(/\s+/g, " "));
    if (names.length) document.getElementById("news").textContent = `Needs you: ${names.join("; ")}`;
  };

  // The stream, which one tab holds for all. Whoever holds the lock leads. A leading tab that is frozen
  // keeps its lock and says nothing: then a tab that is looked at takes it away. Nobody is called live
  // who has not heard the server for a while: it says every fifteen seconds that it is at work.

  const live = document.getElementById("live");
  const STALE_MS = 40000;
  let connected = false, served = Date.now(), unread = null;
  const clock = (at) => new Date(at).toLocaleTimeString([], { hour12: false });
  const drawLive = () => {
    const silent = Date.now() - served > STALE_MS;
    const on = connected && !silent && !unread && !out;
    const words = out ? "logged out" : silent ? `nothing heard since ${clock(served)}` : !connected ? "not connected" : unread ? `not up to date since ${clock(unread.at)}` : "live";
    live.className = on ? "live on" : "live off";
    if (live.textContent !== words) live.textContent = words;
    live.title = unread && !on ? unread.why : "";
    body.dataset.live = on ? "on" : "off";
    const bar = document.getElementById("silence");
    const told = silent && !out ? `Nothing was heard from the server since ${clock(served)}: what is shown may not be so any more.` : "";
    bar.hidden = !told;
    if (bar.textContent !== told) bar.textContent = told;
  };
  const setLive = (on) => { connected = on; if (on) served = Date.now(); drawLive(); };
  const hearServer = () => { served = Date.now(); drawLive(); };
  const channel = "BroadcastChannel" in window ? new BroadcastChannel("sm-page") : null;
  const LOCK = "sm-page-stream", BEAT_MS = 5000, SILENT_MS = 12000, LONGEST_MS = 30000;
  let source = null, pause = AGAIN_MS, waiting = null, release = null, heard = performance.now();

  const hear = (word) => {
    heard = performance.now();
    if (word.what === "changed") { setLive(true); ask(word.sessions, false); }
    else if (word.what === "served") setLive(true);
    else if (word.what === "live") {
      const was_off = body.dataset.live === "off";
      connected = word.on;
      if (word.on && word.now) served = Date.now();
      drawLive();
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
    mine.addEventListener("open", () => { pause = AGAIN_MS; both({ what: "live", on: true, now: true }); });
    mine.addEventListener("changed", (event) => both({ what: "changed", sessions: JSON.parse(event.data).sessions }));
    mine.addEventListener("beat", () => both({ what: "served" }));
    mine.addEventListener("error", () => {
      both({ what: "live", on: false });
      if (mine !== source || mine.readyState !== EventSource.CLOSED) return; // it connects again by itself
      both({ what: "look" }); // the server is there, and has no stream for us: the page is looked up instead
      setTimeout(() => { if (mine === source) open(); }, pause);
      pause = Math.min(2 * pause, LONGEST_MS);
    });
  };
  const letGo = () => { source?.close(); source = null; delete body.dataset.leads; };

  const hold = () => { open(); return new Promise((done) => { release = done; }); };
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

  // Browsers offer locks to safe places alone: elsewhere each tab has a stream of its own.
  const shares = channel && navigator.locks;
  const begin = () => {
    if (!shares) { open(); return; }
    queue();
    say({ what: "hello" });
  };
  // Who goes leaves the lead to others, and who comes back by the browser's own button begins anew.
  const leave = () => {
    waiting?.abort("taken");
    release?.();
    release = null;
    letGo();
  };
  if (channel) channel.onmessage = (event) => hear(event.data);
  begin();
  drawLive();
  if (shares) setInterval(watch, BEAT_MS);
  setInterval(drawLive, BEAT_MS);

  const wake = (missed) => { drawLive(); ask(missed, true); if (shares) watch(); };
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => { if (event.persisted) { setLive(false); begin(); wake(ALL); } });
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
