// The terminal of a session: xterm.js shows the bytes that tmux sends over a WebSocket. It is opened
// by the person, so nothing of it is loaded before; a tab that nobody sees lets go of it.
"use strict";
(() => {
  const part = document.getElementById("terminal");
  if (!part) return;
  const find = (name) => part.querySelector(`[data-is="${name}"]`);
  const frame = find("frame"), inner = find("inner"), state = find("state"), text = find("text");
  const AGAIN_MS = [500, 1000, 2000, 4000, 8000], LOST_MS = 40000, HIDDEN_MS = 10000, PIECE = 16384, TEXT_MS = 3000;
  const FONT = 'ui-monospace, "DejaVu Sans Mono", "Noto Sans Mono", monospace';
  const SMALLEST = 9, SMALLEST_ON_PHONE = 11, LARGEST = 16, WHOLE = 2, PHONE = 640, EDGE = 6;
  const COLOURS = { background: "#0f1215", foreground: "#e6e9ec", cursor: "#e6e9ec", cursorAccent: "#0f1215", selectionBackground: "#3b5378" };
  let terminal = null, socket = null, size = null, types = false, heard = 0, tries = 0, timer = 0, ending = "", plain = false;

  const say = (words, kind) => { state.textContent = words; part.dataset.state = kind; };

  // xterm.js writes styles as text into elements, which our policy stops (style-src 'self'). The same
  // styles by the object model of CSS are allowed: a sheet that is adopted, and an element's own style.
  const styleByObjects = () => {
    const make = document.createElement.bind(document);
    const set = function (name, value) {
      if (name === "style") this.style.cssText = value;
      else Element.prototype.setAttribute.call(this, name, value);
    };
    const makeSheet = () => {
      const sheet = new CSSStyleSheet(), holder = make("meta");
      document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
      Object.defineProperty(holder, "textContent", { set: (rules) => sheet.replaceSync(rules) });
      holder.remove = () => {
        document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
        Element.prototype.remove.call(holder);
      };
      return holder;
    };
    document.createElement = (name, ...more) => {
      if (name === "style") return makeSheet();
      const element = make(name, ...more);
      if (name === "span") element.setAttribute = set;
      return element;
    };
  };

  // What is shown changes nothing beside its rows: no title, clipboard, link, colour or window, no
  // answer that would go to the agent as if somebody had typed it, and no hold on the mouse.
  const silence = (parser) => {
    const swallow = () => true;
    for (const id of [0, 1, 2, 4, 5, 7, 8, 9, 10, 11, 12, 50, 52, 104, 105, 110, 111, 112, 133, 777, 1337]) parser.registerOscHandler(id, swallow);
    for (const id of [
      { final: "c" }, { prefix: ">", final: "c" }, { prefix: "=", final: "c" }, { prefix: ">", final: "q" },
      { final: "n" }, { prefix: "?", final: "n" }, { final: "t" },
      { intermediates: "$", final: "p" }, { prefix: "?", intermediates: "$", final: "p" },
    ]) parser.registerCsiHandler(id, swallow);
    for (const intermediates of ["$", "+"]) parser.registerDcsHandler({ intermediates, final: "q" }, swallow);
    const holds = [9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2031];
    parser.registerCsiHandler({ prefix: "?", final: "h" }, (modes) => modes.some((mode) => holds.includes(mode)));
  };

  const make = async () => {
    const { Terminal } = await import("/page/static/xterm.mjs");
    styleByObjects();
    terminal = new Terminal({
      allowProposedApi: false, scrollback: 0, disableStdin: true, cursorBlink: false, theme: COLOURS,
      fontFamily: FONT, fontSize: SMALLEST, minimumContrastRatio: 4.5, linkHandler: { activate: () => {} },
    });
    silence(terminal.parser);
    terminal.attachCustomWheelEventHandler(() => false); // the page scrolls
    terminal.attachCustomKeyEventHandler((event) => {
      if (types && event.key === "F6") {
        if (event.type === "keydown") leave();
        return false;
      }
      return types;
    });
    terminal.onData(send);
    terminal.open(inner);
    terminal.textarea.tabIndex = -1;
    inner.addEventListener("paste", paste, true);
    // For tests and for whoever looks into a problem: what is shown, as text.
    part.read = () => Array.from({ length: terminal.rows }, (_, row) => terminal.buffer.active.getLine(row).translateToString(true));
  };

  const paste = (event) => {
    event.preventDefault();
    event.stopPropagation();
    const pasted = event.clipboardData?.getData("text/plain") || "";
    if (types) terminal.paste(pasted.replace(/\r\n?/g, "\n").replace(/[^\P{Cc}\t\n]/gu, "")); // no keys
  };

  // Its size: that of the agent's window, in letters as large as the width allows

  let ratio = 0;
  const measure = () => {
    if (ratio) return ratio;
    const probe = document.createElement("span");
    probe.textContent = "W".repeat(50);
    probe.style.cssText = `position: absolute; visibility: hidden; font: 100px ${FONT}`;
    inner.append(probe);
    ratio = probe.getBoundingClientRect().width / 5000 || 0.6;
    probe.remove();
    return ratio;
  };

  const fit = () => {
    if (!terminal || !size || !part.open) return;
    spread();
    if (terminal.cols !== size.columns || terminal.rows !== size.rows) terminal.resize(size.columns, size.rows);
    const whole = find("whole"), least = document.documentElement.clientWidth < PHONE ? SMALLEST_ON_PHONE : SMALLEST;
    const fitting = Math.floor(((frame.clientWidth - 2 * EDGE) / (measure() * size.columns)) * 10) / 10;
    whole.hidden = fitting >= least;
    const smallest = whole.getAttribute("aria-pressed") === "true" ? WHOLE : least;
    terminal.options.fontSize = Math.min(LARGEST, Math.max(smallest, fitting));
    requestAnimationFrame(crop);
  };

  // Wider than the rest of the page, if there is room for larger letters.
  const spread = () => {
    const room = document.documentElement.clientWidth - 32;
    const wanted = Math.min(room, Math.ceil(measure() * LARGEST * size.columns) + 2 * EDGE + 2);
    const more = Math.max(0, wanted - part.clientWidth);
    frame.style.width = `${part.clientWidth + more}px`;
    frame.style.marginLeft = `${-more / 2}px`;
  };

  // tmux's own line is left out while nobody types: what it says is meant for a terminal.
  const crop = () => {
    const screen = inner.querySelector(".xterm-screen");
    if (!screen || !size) return;
    const shown = types ? size.rows : size.rows - (size.below || 0);
    inner.style.height = `${Math.floor((screen.clientHeight / size.rows) * shown)}px`;
    inner.style.width = `${screen.clientWidth}px`;
  };

  // The connection

  const open = () => {
    clearTimeout(timer);
    if (socket || !part.open || document.hidden) return;
    say("connecting …", "waits");
    ending = "";
    if (plain) showPlain(false);
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const own = new WebSocket(`${scheme}//${location.host}/page/terminal/${encodeURIComponent(part.dataset.session)}`);
    socket = own;
    own.binaryType = "arraybuffer";
    own.onmessage = (event) => { if (own === socket) hear(event.data); };
    own.onclose = () => { if (own === socket) lose(); };
    heard = Date.now();
    drawn = 0;
  };

  const close = () => {
    clearTimeout(timer);
    const own = socket;
    socket = null;
    own?.close();
    setTypes(false);
  };

  const lose = () => {
    socket = null;
    setTypes(false);
    if (plain) { say(`${ending}: as text, every ${TEXT_MS / 1000} seconds`, "waits"); return; }
    if (ending) { say(ending, "over"); return; }
    say("not connected: trying again", "off");
    timer = setTimeout(open, AGAIN_MS[Math.min(tries++, AGAIN_MS.length - 1)]);
  };

  const hear = (data) => {
    heard = Date.now();
    if (data instanceof ArrayBuffer) { draw(new Uint8Array(data)); return; }
    const word = JSON.parse(data);
    if (word.what === "begin") begin(word);
    else if (word.what === "size") { size = word.size; fit(); }
    else if (word.what === "gone") { setTypes(false); say(word.why, "waits"); }
    else if (word.what === "refused") { choose("off"); say(word.why, "off"); }
    else if (word.what === "over") ending = word.why;
    else if (word.what === "plain") { ending = word.why; showPlain(true); }
  };

  // The server waits for us, so a slow line or a slow machine lags no further behind than this.
  let drawn = 0;
  const draw = (bytes) => {
    const from = socket;
    terminal.write(bytes, () => {
      drawn += bytes.length;
      if (drawn < PIECE || from !== socket) return;
      wish({ what: "drawn", bytes: drawn });
      drawn = 0;
    });
  };

  const begin = (word) => {
    tries = 0;
    terminal.write("\x1bc"); // behind what is still to be drawn
    size = word.size;
    setTypes(Boolean(word.types));
    fit();
    if (types) terminal.focus();
    frame.hidden = false;
  };

  setInterval(() => {
    if (socket && Date.now() - heard > LOST_MS) { const own = socket; own.onclose = null; own.close(); lose(); }
  }, LOST_MS / 4);

  let hiding = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(() => { if (socket) close(); }, HIDDEN_MS);
    else open();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", () => { if (terminal) open(); });
  part.addEventListener("toggle", async () => {
    if (!part.open) { close(); return; }
    try {
      if (!terminal) await (making ||= make());
      open();
    } catch (error) {
      making = null;
      say("the terminal could not be loaded: reload the page", "over");
      throw error;
    }
  });
  let making = null;
  new ResizeObserver(() => fit()).observe(part);

  // Typing

  const typing = find("typing");
  const choose = (how) => {
    const choice = typing?.querySelector(`input[value="${how}"]`);
    if (choice) choice.checked = true;
    show(how);
  };
  const show = (how) => {
    if (!typing) return;
    find("line").hidden = how !== "line";
    find("keys").hidden = how !== "keys";
  };
  const wish = (word) => { if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(word)); };

  const setTypes = (now) => {
    const was = types;
    types = now;
    part.dataset.types = now ? "yes" : "no";
    if (terminal) {
      terminal.options.disableStdin = !now;
      terminal.textarea.tabIndex = now ? 0 : -1;
      requestAnimationFrame(crop);
    }
    if (was && !now) choose("off");
    if (socket) say(now ? "you are typing into it: F6 leaves" : "live; typing is off", now ? "types" : "on");
  };

  const send = (keys) => {
    if (!types || socket?.readyState !== WebSocket.OPEN) return;
    const bytes = new TextEncoder().encode(keys);
    for (let at = 0; at < bytes.length; at += PIECE) socket.send(bytes.subarray(at, at + PIECE));
  };

  const leave = () => {
    wish({ what: "look" });
    setTypes(false);
    choose("off");
    typing.querySelector("input:checked").focus();
  };

  typing?.addEventListener("change", (event) => {
    const how = event.target.value;
    show(how);
    if (how === "keys") wish({ what: "type", csrf: part.dataset.csrf });
    else if (types) { wish({ what: "look" }); setTypes(false); choose(how); }
    if (how === "line") find("line").querySelector("textarea").focus();
  });
  find("line")?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    event.target.form?.requestSubmit();
  });
  const KEYS = { escape: "\x1b", tab: "\t", back: "\x1b[Z", up: "\x1b[A", down: "\x1b[B", left: "\x1b[D", right: "\x1b[C", enter: "\r", stop: "\x03" };
  find("keys")?.addEventListener("click", (event) => {
    const key = event.target.dataset?.key;
    if (key) { send(KEYS[key]); terminal.focus(); }
  });

  // Other ways to see it

  const press = (button, act) => button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    act(on);
  });
  press(find("whole"), fit);
  press(find("aloud"), (on) => { if (terminal) terminal.options.screenReaderMode = on; });
  const readText = () => window.htmx?.trigger(text, "sm-read");
  press(find("plain"), (on) => { text.hidden = !on; if (on) readText(); });

  // What cannot be shown live is read again and again, for as long as somebody sees it.
  const showPlain = (on) => {
    plain = on;
    find("plain").setAttribute("aria-pressed", String(on));
    text.hidden = !on;
    frame.hidden = on;
    if (on) readText();
  };
  setInterval(() => { if (plain && part.open && !document.hidden) readText(); }, TEXT_MS);
})();
