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

  const ANSWERS = "textarea, .offer input:not([type=hidden]), .offer button, .later > summary";
  const findAnswer = (need) => need?.querySelector(ANSWERS) || need?.querySelector("summary, a");

  const findMeant = () => {
    const name = location.hash.slice(1);
    return document.getElementById(name) || (name === "changes" ? document.querySelector(".desk details.diff") : null);
  };

  const openMeant = () => {
    const meant = findMeant();
    if (meant?.matches("details")) { meant.open = true; meant.scrollIntoView(); }
    if (meant?.matches(".need")) {
      meant.scrollIntoView({ block: "start" });
      findAnswer(meant)?.focus({ preventScroll: true });
    }
    tellSettled();
  };

  // It is settled if the session is there and needs nobody. Of one that is not there only its own page
  // knows more: it may be over, or its project cannot be read.
  const tellSettled = () => {
    const note = document.getElementById("settled"), name = location.hash.slice(1);
    if (!note) return;
    const session = name.startsWith("need-") && !document.getElementById(name) ? name.slice("need-".length) : "";
    const there = [...document.querySelectorAll("#rows > li")].some((row) => row.dataset.key === session);
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
    if (event.key === "!") { moveOn(); focus(event, findAnswer(document.querySelector("#needs > li"))); }
  });
  const focus = (event, at) => {
    if (!at) return;
    event.preventDefault();
    at.focus();
    at.scrollIntoView({ block: "center" });
  };
})();
