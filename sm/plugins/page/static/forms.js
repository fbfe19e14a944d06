// What a person does here: forms and what comes of them, links to parts of a page, keys.
"use strict";
(() => {
  const body = document.body;
  const SAID_MS = 12000;

  // Who comes by a link of another site is logged in, maybe: the browser sends our cookie only when we
  // ask ourselves (SameSite=Strict). Once: a page that was loaded again stays as it is.

  if ("arrives" in body.dataset && performance.getEntriesByType("navigation")[0]?.type === "navigate") location.reload();

  // What a form has led to

  const said = document.getElementById("said");
  let fading = 0;
  const say = (words) => {
    said.replaceChildren(Object.assign(document.createElement("p"), { className: "bad", textContent: words }));
    clearTimeout(fading);
  };
  const look = (sessions) => body.dispatchEvent(new CustomEvent("sm-look", { detail: sessions }));

  const LATE_MS = 30000;
  const late = new Map();
  body.addEventListener("htmx:beforeRequest", (event) => {
    const form = event.detail.elt;
    if (!form.matches?.(".offer")) return;
    if (form.closest(".outdated, .answered")) { event.preventDefault(); return; }
    clearTimeout(fading);
    late.set(form, setTimeout(say, LATE_MS, "No answer for 30 seconds: it may be done all the same, or not. What you have written is still here."));
  });

  body.addEventListener("htmx:afterRequest", (event) => {
    const form = event.detail.elt;
    if (!form.matches?.(".offer")) return;
    clearTimeout(late.get(form));
    late.delete(form);
    clearTimeout(fading);
    if (!event.detail.successful) say("That could not be sent: the server does not answer. What you have written is still here.");
    const done = event.detail.successful && said.querySelector("[data-done]") !== null;
    settleEcho(form, done);
    look([form.elements.session.value].filter(Boolean));
    if (!done) return;
    const card = form.closest(".need");
    if (form.contains(document.activeElement)) document.activeElement.blur();
    if (card) answer(card, said.textContent);
    form.reset();
    form.closest("details.later")?.removeAttribute("open");
    fading = setTimeout(() => { said.textContent = ""; }, SAID_MS);
  });

  // What was answered stays in its place, and as high as it was, until the person moves on: what would
  // come there instead might get the second of two taps

  const answer = (card, words) => {
    card.style.minHeight = `${card.getBoundingClientRect().height}px`;
    card.classList.add("answered");
    const way = Object.assign(document.createElement("button"), { type: "button", textContent: "Put away" });
    way.addEventListener("click", moveOn);
    const told = Object.assign(document.createElement("p"), { className: "done", textContent: words.trim() });
    card.querySelector(".desk, .answers").replaceChildren(told, way);
  };
  const moveOn = () => {
    const cards = document.querySelectorAll(".answered");
    if (!cards.length) return;
    for (const card of cards) card.remove();
    shift(document.getElementById("needs"));
    look([""]);
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) moveOn(); });
  document.getElementById("filter")?.addEventListener("input", moveOn);

  // A click that comes within a second after something has moved may have been meant for what stood
  // there before: it does nothing, and says so

  const STILL_MS = 1000;
  const shifts = [];
  let stilled = 0;
  const shift = (from) => {
    shifts.push({ at: performance.now(), from });
    body.dataset.moved = "";
    clearTimeout(stilled);
    stilled = setTimeout(() => { shifts.length = 0; delete body.dataset.moved; }, STILL_MS);
  };
  const hasMoved = (at) => shifts.some(({ from, at: when }) =>
    performance.now() - when < STILL_MS && from.isConnected &&
    (from.contains(at) || from.compareDocumentPosition(at) & Node.DOCUMENT_POSITION_FOLLOWING));
  body.addEventListener("sm-shift", (event) => shift(event.detail));
  document.addEventListener("click", (event) => {
    const at = event.target.closest?.("main button, main a, main summary");
    if (!event.detail || !at || !hasMoved(at)) return; // a key goes where the focus is
    event.preventDefault();
    event.stopImmediatePropagation();
    say("The page has just moved under your hand, so nothing was done: press again.");
    fading = setTimeout(() => { said.textContent = ""; }, SAID_MS);
  }, true);
  const main = document.getElementById("main");
  let height = 0;
  body.addEventListener("htmx:beforeSwap", () => { height = main.offsetHeight; });
  body.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id === "said" || !main.contains(event.target) || main.offsetHeight === height) return;
    shift(event.target);
  });

  // A part that could not be read says so, and can be asked for again

  const offerAgain = (event) => {
    const part = event.detail.target, path = event.detail.pathInfo?.requestPath;
    if (!path || !part?.matches(".body, .pane")) return;
    const again = Object.assign(document.createElement("button"), { type: "button", textContent: "Try again" });
    again.addEventListener("click", () => window.htmx.ajax("GET", path, { source: part, target: part }));
    const words = event.detail.xhr?.status ? "This could not be read." : "The server does not answer.";
    part.replaceChildren(Object.assign(document.createElement("p"), { className: "bad", textContent: words }), again);
  };
  for (const name of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) body.addEventListener(name, offerAgain);

  // A message stands in the list as soon as it is sent, until the server's list has it

  const echoes = new Map();
  const putEchoes = () => {
    const list = document.querySelector("#messages ul");
    for (const echo of echoes.values()) list?.prepend(echo);
  };
  body.addEventListener("htmx:beforeRequest", (event) => {
    const form = event.detail.elt;
    if (!form.matches?.(".offer") || form.elements.act?.value !== "send") return;
    const chip = Object.assign(document.createElement("span"), { className: "chip waiting", textContent: "on its way" });
    const echo = document.createElement("li");
    echo.className = "echo";
    echo.append(chip, document.createElement("br"), form.elements.text.value.trim().split("\n")[0].slice(0, 300));
    echoes.set(form, echo);
    putEchoes();
  });
  const settleEcho = (form, done) => {
    const echo = echoes.get(form);
    echoes.delete(form);
    if (echo && !done) echo.remove();
  };
  body.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id === "messages") putEchoes();
    // The end of a log is where it failed
    for (const log of event.target.querySelectorAll("pre.log")) log.scrollTop = log.scrollHeight;
  });

  // A link such as #changes leads to a part that is closed at first, one such as #need-dev-shop-7 to
  // what a person was told of

  const ANSWERS = ".detail :is(textarea, .offer input:not([type=hidden]), .offer button, .later > summary)";
  const findAnswer = (need) => need?.querySelector(ANSWERS) || need?.querySelector(".detail :is(summary, a), summary");

  const findMeant = () => {
    const name = location.hash.slice(1);
    return document.getElementById(name) || (name === "changes" ? document.querySelector(".desk details.diff") : null);
  };

  const openMeant = () => {
    const meant = findMeant();
    if (meant?.matches("details")) { meant.open = true; meant.scrollIntoView(); }
    if (meant?.matches(".need")) openNeed(meant);
    tellSettled();
  };

  // A need is read when it is opened, and its answer has the focus as soon as it is there
  let meantNext = null;
  const openNeed = (need) => {
    const line = need.querySelector("details");
    const is_read = need.querySelector(".detail");
    line.open = true;
    need.scrollIntoView({ block: "start" });
    if (is_read) findAnswer(need)?.focus({ preventScroll: true });
    else { meantNext = need; line.querySelector("summary").focus({ preventScroll: true }); }
  };
  body.addEventListener("htmx:afterSettle", (event) => {
    const need = event.target.closest?.(".need");
    if (!need || need !== meantNext) return;
    meantNext = null;
    if (need.contains(document.activeElement)) findAnswer(need)?.focus({ preventScroll: true });
  });

  // Where there is room beside the lines, the first one is open at once
  const openFirst = () => {
    const first = document.querySelector("#needs > li details");
    const is_wide = matchMedia("(min-width: 64rem)").matches;
    if (is_wide && first && !location.hash && !document.querySelector("#needs details[open]")) first.open = true;
  };
  addEventListener("load", openFirst);
  body.addEventListener("htmx:afterSwap", (event) => { if (event.target.id === "shown") openFirst(); });

  const step = (by) => {
    const lines = [...document.querySelectorAll("#needs > li")];
    const now = lines.findIndex((need) => need.querySelector("details[open]"));
    const next = lines[now < 0 ? 0 : Math.min(lines.length - 1, Math.max(0, now + by))];
    if (!next) return;
    next.querySelector("details").open = true;
    next.querySelector("summary").focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  };

  // A choice fills the box, and can still be changed there
  body.addEventListener("click", (event) => {
    const choice = event.target.closest?.(".choice");
    const box = choice?.closest(".answers").querySelector("textarea");
    if (!box) return;
    box.value = choice.dataset.fill;
    box.focus();
  });

  // It is settled if the session is there and needs nobody. Of one that is not there only its own page
  // knows more: it may be over, or its project cannot be read.
  const tellSettled = () => {
    const note = document.getElementById("settled"), name = location.hash.slice(1);
    if (!note) return;
    const session = name.startsWith("need-") && !document.getElementById(name) ? name.slice("need-".length) : "";
    const there = [...document.querySelectorAll("#rows > [data-key]")].some((row) => row.dataset.key === session);
    note.hidden = !session;
    note.querySelector("span").textContent = `What you were told of is ${there ? "settled" : "not here any more"}:`;
    note.querySelector("a").href = `/page/session/${encodeURIComponent(session)}`;
    note.querySelector("a").textContent = session;
  };
  addEventListener("hashchange", openMeant);
  addEventListener("load", openMeant);
  body.addEventListener("sm-changed", tellSettled);

  // Who logs in comes back to where they were, also to what stands behind #, which no server is told

  document.addEventListener("click", (event) => {
    const way = event.target.closest?.('a[href="/page/login"]');
    if (way) way.href += `?to=${encodeURIComponent(location.pathname + location.search + location.hash)}`;
  });

  // Keys

  document.addEventListener("keydown", (event) => {
    const writes = event.target.matches?.("input:not([type=radio]), textarea, select");
    if (event.key === "Escape" && writes) { event.target.blur(); return; }
    if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") focus(event, document.getElementById("q"));
    if (event.key === "!") { moveOn(); const need = document.querySelector("#needs > li"); if (need) { event.preventDefault(); openNeed(need); } }
    if (event.key === "j" || event.key === "k") { event.preventDefault(); step(event.key === "j" ? 1 : -1); }
  });
  const focus = (event, at) => {
    if (!at) return;
    event.preventDefault();
    at.focus();
    at.scrollIntoView({ block: "center" });
  };
})();
