// The page of one agent. It acts by itself: the next action comes from its own readings, in this browser.
"use strict";
(() => {
  const { html, badge, mapView, gridView, near, parted, shown, brief, plural } = views;
  const POLL = 5, PATIENCE = 12; // seconds between questions for the stop bit, and until a request is given up
  const TILES = 12; // choices that are shown at once
  const $ = (id) => document.getElementById(id);
  const put = (id, ...parts) => $(id).replaceChildren(...parts.flat().filter((part) => part !== null && part !== ""));
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

  let about, team, box, actor, names, word, step, stopped = false, drawn = "", listed = "", done = null, wide = false, page = null, editing = null;
  let form = null, subject = "", unkept = ""; // what the form is for, as content of an entry; why a stop could not be kept

  async function request(path, options = {}) {
    const cut = new AbortController(), timer = setTimeout(() => cut.abort(), PATIENCE * 1000);
    try {
      const response = await fetch(path, { ...options, signal: cut.signal, cache: "no-cache" });
      const body = await response.json().catch(() => ({}));
      return { status: response.status, ok: response.ok, body, text: (body.error || {}).text || `error ${response.status}` };
    } finally { clearTimeout(timer); }
  }
  const post = (message, more) => request("messages", { ...more, method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...message, agent: about.agent, session: about.session }) });

  // -- the state of the agent

  const key = (what) => `icmape/${about.session}/${about.agent}/${what}`;
  function think() {
    step = actor.next(box.live());
    unkept = "";
    if (!step.stop || stopped || box.live().some((entry) => entry.type === "stop")) return;
    try { box.record({ type: "stop", round: step.round }); }
    catch (error) { unkept = error.message; } // people see the stop all the same, and it is tried again each second
  }

  function learnStop(bit) {
    if (!bit || stopped) return;
    stopped = true;
    try { localStorage.setItem(key("stopped"), "yes"); }
    catch { return; } // it is asked for again after a reload
  }

  async function poll() {
    if (document.hidden && !box.unsent().length) return;
    const sent = box.sent();
    try {
      const { status, body, text } = await request("state");
      if (body.ok === true && body.session === about.session) {
        box.reached();
        learnStop(body.stopped);
        box.merge(body.entries, sent);
      } else if (body.ok === false && status === 401) box.refused = text;
      else box.online = body.ok === false; // whatever else replied is not the server of this session
    } catch { box.online = false; }
    update();
  }

  // -- positions, where actions are moves

  const moves = () => (team.display.actions.kind === "moves" ? team.display.actions : null);
  const moved = (place, action) => views.moved(moves(), place, action);
  function trail() { // rows and columns, from the start
    const walk = [moves().starts[about.agent]], { rounds, first, open } = acting.collected(box.live());
    const told = (entry) => parted(team.layout, entry.reading)[moves().position].flat(Infinity);
    if (first) walk.push(told(first));
    for (let n = 0; n < open; n++) {
      const entry = rounds.get(n), here = walk[walk.length - 1];
      walk.push(entry.type === "tell" ? told(entry) : entry.action === undefined ? here : moved(here, entry.action));
    }
    return walk;
  }
  const ownView = (own) => views.seenAround(moves(), team.parts, own.filter((one) => one.reading !== undefined).map((one) => parted(team.layout, one.reading)));
  const target = () => (done === null ? step.action : done); // what was done instead, if that was said

  // -- drawing

  function update() {
    if (!about) return;
    think();
    const waiting = box.unsent().filter((entry) => entry.type !== "stop").length;
    put("where", html("strong", {}, `${word} ${about.agent + 1}`), ` · round ${step.round + 1}`);
    const kept = plural(waiting, "reading");
    const network = box.refused ? box.refused : box.online ? (waiting ? `${kept} to be sent` : box.entries.length ? "everything is sent" : "connected") : waiting ? `offline, ${kept} kept` : "offline";
    if ($("network").textContent !== network) put("network", network);
    $("network").className = box.refused ? "bad" : !box.online ? "off" : waiting ? "wait" : "on";
    const over = stopped || step.stop;
    drawOver(over);
    const now = JSON.stringify([step, over, done, wide, page, editing && (editing.id || editing), box.live().length]);
    if (now !== drawn) { drawn = now; drawStep(over); }
    drawEntries();
  }

  function drawOver(over) {
    $("over").hidden = !over;
    if (!over) return;
    const own = box.live().find((entry) => entry.type === "stop");
    const sent = !own || own.state === "sent";
    const title = own || unkept ? "Your readings say: STOP for everyone" : "Stop: the round is over";
    const text = unkept ? `The stop could not be kept on this phone (${unkept}), so it was not sent. Take no more readings, and tell the coordinator.`
      : !own ? `Another ${word.toLowerCase()} or the coordinator stopped. Take no more readings.`
        : sent ? "The stop was sent: one bit, nothing else. Take no more readings."
          : box.canCorrect(own) && own.from > Date.now() && box.online ? "One bit goes to everyone in a few seconds. Correct your last reading before that if it is wrong."
            : "One bit goes to everyone as soon as there is a network. Take no more readings.";
    const lines = [title, text].join("\n");
    if ($("over").dataset.lines === lines) return;
    $("over").dataset.lines = lines;
    put("over", html("h1", { tabindex: -1 }, title), html("p", {}, text));
  }

  function drawStep(over) {
    const active = !over || editing !== null;
    $("next").hidden = over && editing === null;
    $("form").hidden = !active;
    const late = editing === "late" && !step.needsFirst;
    $("other").hidden = late ? false : over || step.needsFirst || editing !== null;
    $("none").hidden = late; // only a reading is told after the end
    $("late").hidden = !over || step.stop || editing !== null || step.round >= team.sizes.horizon - 1;
    $("view").hidden = false;
    const action = isEntry() ? editing.action : target();
    if (editing !== null) put("title", editing === "late" ? `A reading from before the end${late ? `: ${names[action]}` : ""}` : editing.type === "first" ? "Correct what you saw" : `Correct round ${editing.round + 1}`);
    else if (step.needsFirst) put("title", "Before you start: what do you see?");
    else if (!over) put("title", `${team.display.verb} ${names[action]}`);
    const places = team.display.actions.kind === "places";
    put("near", places && active && action !== undefined ? near(team.display.actions.coordinates[action], about.map) : "");
    drawPicture(over, action);
    if (active) drawForm();
    if (!over || late) drawOther();
  }

  const PICTURES = {
    places: (own, action, over) => {
      const marks = own.filter((entry) => entry.type === "tell").map((entry) => ({ action: entry.action, agent: about.agent, text: brief(entry.reading, team) }));
      const at = over || action === undefined ? null : { action, agent: about.agent };
      $("zoom").hidden = !at;
      if (at) put("zoom", html("button", { type: "button", "aria-pressed": String(wide), onclick: () => { wide = !wide; update(); } }, wide ? "closer" : "whole map"));
      const zoom = at && !wide ? { action, degrees: 1.3 } : null;
      return mapView({ display: team.display, map: about.map, marks, target: at, zoom, names, label: "map", width: $("view").clientWidth });
    },
    cells: (own, action, over) => {
      const { rows, columns, cells } = team.display.actions;
      const place = (n) => ({ row: Math.floor(cells[n] / columns), column: cells[n] % columns });
      const spots = own.filter((entry) => entry.type === "tell").map((entry) => ({ ...place(entry.action), agent: about.agent, text: shown(entry.reading, team) }));
      return gridView({ rows, columns, spots, target: over || action === undefined ? null : place(action), label: "grid" });
    },
    moves: (own, action, over) => {
      const { rows, columns, window: seen } = moves(), walk = trail(), here = walk[walk.length - 1];
      const goal = over || action === undefined ? null : moved(here, action), size = seen === null ? [1, 1] : team.parts[seen].shape;
      const windows = goal && seen !== null ? [{ row: goal[0] - (size[0] >> 1), column: goal[1] - (size[1] >> 1), rows: size[0], columns: size[1] }] : [];
      const spots = [{ row: here[0], column: here[1], agent: about.agent, text: about.agent + 1 }];
      const label = `grid; you are at row ${here[0] + 1}, column ${here[1] + 1}${goal ? `, and go to row ${goal[0] + 1}, column ${goal[1] + 1}` : ""}`;
      const way = goal ? [...walk, goal] : walk, to = goal && { row: goal[0], column: goal[1] };
      return gridView({ rows, columns, spots, windows, trail: way, target: to, shades: seen === null ? null : ownView(own), label });
    },
    choices: (own, action, over) => {
      const first = page === null ? Math.floor((action || 0) / TILES) * TILES : page, most = names.length;
      const tile = (name, n) => {
        const tried = own.filter((entry) => entry.type === "tell" && entry.action === n).map((entry) => shown(entry.reading, team)).slice(-6).join(" ");
        const is = !over && n === action;
        return html("li", { class: is ? "tile next" : "tile", "aria-current": is ? "true" : null }, html("strong", {}, name), html("span", {}, is ? `${isEntry() ? "this one" : "next"}${tried ? `; so far ${tried}` : ""}` : tried || "–"));
      };
      const tiles = names.map(tile).slice(first, first + TILES);
      const turn = (to, text) => html("button", { type: "button", disabled: to < 0 || to >= most, onclick: () => { page = to; update(); } }, text);
      const pager = most > TILES ? html("div", { class: "row" }, turn(first - TILES, "earlier"), html("span", {}, `${first + 1}–${Math.min(first + TILES, most)} of ${most}`), turn(first + TILES, "later")) : null;
      return html("div", {}, html("ul", { class: "tiles" }, ...tiles), pager);
    },
  };
  function drawPicture(over, action) {
    const own = box.live().filter((entry) => entry.state !== "refused");
    const { kind } = team.display.actions;
    put("picture", PICTURES[kind](own, action, over || (kind === "moves" && isEntry()))); // a move that was made is in the trail
  }

  let parts = [];
  const isEntry = () => editing !== null && editing !== "late"; // an entry is corrected
  // The form is for one content, which `report` takes: steps of the page do not change it, nor what is typed.
  function drawForm() {
    const now = isEntry() ? { id: editing.id, type: editing.type, round: editing.round, action: editing.action }
      : step.needsFirst ? { type: "first" } : { type: "tell", round: step.round, action: target() ?? 0 };
    $("instead").hidden = done === null && editing === null;
    put("instead", done !== null && editing === null ? `Instead of ${names[step.action]}: ${names[done]}. ` : "", html("button", { type: "button", onclick: cancel }, "Cancel"));
    put("report", isEntry() ? "Keep the correction" : "Report");
    const key = JSON.stringify([now, moves() && placeOfForm(moves())]);
    if (key === subject) return;
    subject = key;
    form = now;
    drawFields();
  }
  function drawFields() {
    parts = team.parts.map((_, n) => new fields.Part(team, about.agent, n));
    put("fields", parts.map((part) => part.draw()));
    put("wrong");
    const walk = moves();
    if (walk) {
      const goal = placeOfForm(walk);
      goal.forEach((value, n) => parts[walk.position].fix(n, value));
      parts[walk.position].inputs[0].node.closest("fieldset").hidden = true;
      if (walk.window !== null) fixOutside(parts[walk.window], goal, walk);
    }
    if (isEntry() && editing.reading !== undefined) parted(team.layout, editing.reading).forEach((value, n) => parts[n].write(value));
  }
  function placeOfForm({ position }) { // where the reading of the form is taken
    if (isEntry()) return parted(team.layout, editing.reading)[position].flat(Infinity);
    const way = trail(), here = way[way.length - 1];
    return step.needsFirst || target() === undefined ? here : moved(here, target());
  }
  function fixOutside(part, [row, column], { rows, columns }) { // what lies beyond the grid is 0
    const [high, across] = part.shape;
    for (let n = 0; n < part.count; n++) {
      const r = row + Math.floor(n / across) - (high >> 1), c = column + (n % across) - (across >> 1);
      if (r < 0 || r >= rows || c < 0 || c >= columns) part.fix(n, 0);
    }
  }

  function drawOther() {
    const allowed = names.map((name, n) => [name, n]).filter(([, n]) => actor.allows(n));
    put("action", allowed.map(([name, n]) => html("option", { value: n, selected: n === target() }, name)));
    for (const id of ["missed", "skipped"]) {
      put(id, $(id).dataset.words);
      $(id).dataset.sure = "";
    }
  }

  function drawEntries() {
    const own = box.entries.filter((entry) => entry.type !== "stop").sort((a, b) => (a.round ?? -1) - (b.round ?? -1));
    $("list").hidden = !own.length;
    const last = box.last(), now = JSON.stringify([own, box.online, last && box.canCorrect(last)]);
    if (now === listed) return; // a button that is being pressed stays
    listed = now;
    const STATES = { sent: "sent", kept: box.online ? "kept, to be sent" : "kept", refused: "not recorded" };
    put("entries", own.reverse().map((entry) => {
      const what = entry.type === "first" ? "at the start" : entry.type === "missed" ? (entry.action === undefined ? "not done" : `no reading, ${names[entry.action]}`) : names[entry.action];
      const value = entry.reading === undefined ? "" : shown(entry.reading, team);
      const fix = last && entry.id === last.id && box.canCorrect(entry) ? html("button", { type: "button", class: "small", onclick: () => correct(entry) }, "Correct") : null;
      const error = entry.state === "refused" ? html("span", { class: "bad" }, entry.error) : null;
      return html("li", { class: entry.state }, html("span", { class: "number" }, entry.round === undefined ? "–" : entry.round + 1), html("span", { class: "what" }, html("span", {}, what), html("strong", {}, value)), html("span", { class: "state" }, STATES[entry.state], fix), error);
    }));
  }

  // -- what people do

  function attempt(action) { // what the browser cannot store is not shown as kept
    try { action(); return true; }
    catch (error) {
      put("wrong", `This phone could not keep the reading (${error.message}). Write it down, and tell the coordinator.`);
      return false;
    }
  }

  function correct(entry) {
    if (!box.canCorrect(entry)) return;
    if (entry.type === "missed") attempt(() => box.correct(entry.id, null));
    else {
      editing = entry;
      box.pause(entry.id);
    }
    update();
    if (editing) $("title").focus();
  }

  function cancel() {
    done = editing = null;
    subject = "";
    box.resume();
    update();
  }

  function report(event) {
    event.preventDefault();
    let reading;
    try { reading = fields.laid(team.layout, parts.map((part) => part.read())); }
    catch (error) {
      put("wrong", error.message);
      if (error.input) (error.input.node || error.input).focus();
      return;
    }
    const { id, ...content } = form;
    if (!attempt(() => (id ? box.correct(id, { ...content, reading }) : box.record({ ...content, reading })))) return;
    done = editing = page = null;
    subject = "";
    update();
    ($("over").hidden ? $("title") : $("over").querySelector("h1")).focus({ preventScroll: true });
    window.scrollTo({ top: 0 });
    box.flush();
  }

  function missed(id, acted) {
    if (!$(id).dataset.sure) {
      $(id).dataset.sure = "yes";
      put(id, "Yes, give up this round's reading");
      return;
    }
    const what = acted ? { action: target() } : {};
    if (!attempt(() => box.record({ type: "missed", round: step.round, ...what }))) return;
    done = null;
    $("else").open = false;
    update();
    box.flush();
  }

  // -- its beginning

  function tick() {
    if (isEntry() && box.isKept(editing.id)) box.pause(editing.id);
    else if (isEntry()) { // another tab sent it, or the journal holds it
      cancel();
      put("wrong", "The reading was sent before it was corrected. Tell the coordinator.");
    }
    box.flush();
    drawOver(stopped || step.stop);
  }

  async function begin() {
    const [one, other] = await Promise.all([request("about.json"), request("team.json")]);
    if (!one.ok || !other.ok) throw new Error(one.ok ? other.text : one.text);
    about = one.body;
    team = icmape.load(other.body);
    names = team.actions || Array.from({ length: team.sizes.actions }, (_, n) => String(n));
    word = capital(team.display.agent);
    actor = new acting.Acting(team, about.agent);
    box = new outbox.Outbox({ name: key("entries"), storage: localStorage, post, changed: () => {}, hold: about.hold });
    box.changed = update;
    stopped = localStorage.getItem(key("stopped")) === "yes";
    document.title = `${word} ${about.agent + 1} · icmape`;
    put("badge", badge(about.agent));
    $("form").addEventListener("submit", report);
    $("missed").addEventListener("click", () => missed("missed", true));
    $("skipped").addEventListener("click", () => missed("skipped", false));
    $("late-open").addEventListener("click", () => { editing = "late"; $("else").open = true; update(); });
    $("action").addEventListener("change", (event) => {
      done = Number(event.target.value) === step.action ? null : Number(event.target.value);
      update();
    });
    window.addEventListener("storage", (event) => { if (event.key === null || event.key.startsWith(box.name)) { box.load(); update(); } }); // another tab
    window.addEventListener("online", () => { box.reached(); poll(); });
    window.addEventListener("offline", () => { box.online = false; update(); });
    document.addEventListener("visibilitychange", () => (document.hidden ? box.leave() : poll()));
    update();
    setInterval(tick, 1000);
    setInterval(poll, POLL * 1000);
    await poll();
  }

  function start() {
    begin().catch((error) => {
      put("title", "This page could not be loaded");
      put("near", `${error.message || error}. It needs the network once; readings that this phone kept are still there.`);
      setTimeout(start, 5000);
    });
  }
  if ("serviceWorker" in navigator && window.isSecureContext) navigator.serviceWorker.register("worker.js").catch(() => {});
  start();
})();
