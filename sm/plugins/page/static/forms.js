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
  const look = (sessions) => body.dispatchEvent(new CustomEvent("sm-look", { detail: sessions }));

  body.addEventListener("htmx:afterRequest", (event) => {
    const form = event.detail.elt;
    if (!form.matches?.(".offer")) return;
    if (!event.detail.successful) said.textContent = "That could not be sent: the server does not answer.";
    clearTimeout(fading);
    const done = event.detail.successful && said.querySelector("[data-done]") !== null;
    settleEcho(form, done);
    if (!done) return;
    form.reset();
    form.closest("details.later")?.removeAttribute("open");
    if (form.contains(document.activeElement)) document.activeElement.blur();
    fading = setTimeout(() => { said.textContent = ""; }, SAID_MS);
    look([form.elements.session.value].filter(Boolean));
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

  const findAnswer = (need) =>
    need?.querySelector("textarea, .offer input:not([type=hidden]), .offer button, summary") || need?.querySelector("a");

  const openMeant = () => {
    const name = location.hash.slice(1);
    const meant = name ? document.getElementById(name) : null;
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
    if (event.key === "!") focus(event, findAnswer(document.querySelector("#needs > li")));
  });
  const focus = (event, at) => {
    if (!at) return;
    event.preventDefault();
    at.focus();
    at.scrollIntoView({ block: "center" });
  };
})();
