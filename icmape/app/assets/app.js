// The page: tabs for teams, and for each two things to do.
"use strict";
(() => {
  const { html } = views;
  const $ = (id) => document.getElementById(id);
  const MODES = [["play", "Beat the team"], ["whatif", "What if"]];
  const sources = [...document.querySelectorAll("script.team")], books = new Map(), views_ = new Map();
  let current = 0, mode = "play", shown = null;

  async function unpacked(source) { // the team of a tab, read when it is opened
    const packed = Uint8Array.from(atob(source.textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new games.Book(JSON.parse(await new Response(stream).text()));
  }
  function bookOf(n) {
    if (!books.has(n)) books.set(n, unpacked(sources[n]));
    return books.get(n);
  }

  function drawTabs() {
    $("tabs").replaceChildren(...sources.map((source, n) => html("button", { type: "button", role: "tab", id: `tab-${n}`, "aria-selected": String(n === current), tabindex: n === current ? 0 : -1, "aria-controls": "game", onclick: () => open(n, mode) }, source.dataset.name)));
    $("modes").replaceChildren(...MODES.map(([name, text]) => html("button", { type: "button", id: `mode-${name}`, "aria-pressed": String(name === mode), onclick: () => open(current, name) }, text)));
    $("game").setAttribute("aria-labelledby", `tab-${current}`);
  }

  const KEYS = { choices: "digits choose", moves: "arrow keys move", places: "arrow keys on the map choose a place, Enter goes there", cells: "arrow keys on the grid choose a cell, Enter goes there" };
  function drawWords(book) {
    const word = book.team.display.agent, remark = book.people.remark;
    $("question").textContent = book.people.question;
    $("how").open = mode === "whatif" || !(played.has(book.name) || new playing.Tally(book.name).counts.games);
    $("rules").textContent = mode === "play"
      ? `You are one of ${book.agents} ${word}s and see only your own readings; a trained network plays the others. Press STOP once everyone's readings together should give the answer: be right in fewer rounds than the network alone. Worlds in which it needs no reading are left out.`
      : "Change any reading of a game and watch the posterior, and who would stop. The actions stay as they were.";
    $("explanation").textContent = book.people.explanation;
    $("keys").textContent = mode === "play" ? `Keys: ${KEYS[pictures.kindOf(book)]}, S stops, N goes to the next world.` : "";
    $("about-text").textContent = `icmape ${JSON.parse($("about").textContent).version}${remark ? ` · ${remark}` : ""} · this page asks no network for anything; your tally stays in this browser.`;
  }

  async function open(n, wanted) {
    [current, mode] = [n, wanted];
    drawTabs();
    const id = `${n}/${wanted}`;
    if (!books.has(n)) $("stage").replaceChildren(html("p", { class: "hint" }, "Loading…"));
    try {
      const book = await bookOf(n);
      if (current !== n || mode !== wanted) return;
      drawWords(book);
      const stage = html("div", { class: "stage" });
      if (!views_.has(id)) views_.set(id, wanted === "play" ? new playing.Play(book, stage, 0, (game, network) => told(n, game, network)) : new whatif.WhatIf(book, stage, last.get(n)));
      shown = views_.get(id);
      $("stage").replaceChildren(shown.stage);
    } catch (error) {
      const old = typeof DecompressionStream === "undefined";
      $("stage").replaceChildren(html("p", { class: "bad" }, old ? "This browser is too old for this page: it needs one of 2023 or newer." : `This team could not be read: ${error.message}`));
    }
  }
  const last = new Map(), played = new Set(); // of each tab: the last game; names of teams that were played
  function told(n, game, network) {
    last.set(n, { game, network });
    played.add(game.book.name);
    $("how").open = false;
    views_.delete(`${n}/whatif`);
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { target } = event;
    if (target.getAttribute && target.getAttribute("role") === "tab" && ["ArrowLeft", "ArrowRight"].includes(event.key)) {
      const to = (current + (event.key === "ArrowRight" ? 1 : sources.length - 1)) % sources.length;
      open(to, mode).then(() => $(`tab-${to}`).focus());
      $(`tab-${to}`).focus();
      event.preventDefault();
      return;
    }
    if (["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName)) return;
    if (shown && shown.key && shown.key(event)) event.preventDefault();
  });
  open(0, "play");
})();
