// The page: asks the server, colors the map, keeps the selection. Names are relative, so that the token stays in place.
"use strict";
import { FAINT, HIDDEN, MARKED, PLAIN, PointMap } from "./points.js";
import { byId, effectsPanel, element, nameButton, number, profilePanel, rowPanel, tipPanel, whyPanel } from "./panels.js";

const RAMP = ["#443983", "#31688e", "#21918c", "#35b779", "#90d743", "#f0dc30"];
const MISSING = [140, 146, 153, 110], INK = 215, REACH = 14, NAMES_SHOWN = 30;
const canvas = byId("points"), above = byId("above"), tip = byId("tip");
const state = {
  about: null, map: null, model: 0, column: null, values: null, off: new Set(), low: null, high: null,
  selected: new Set(), only: false, under: null, chosen: null, lassoing: false, loop: null, asked: 0,
};

// ---- asking

async function ask(name, query = {}, body = undefined) {
  const address = `${name}?${new URLSearchParams(query)}`;
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(address, options), kind = answer.headers.get("Content-Type") || "";
  if (!answer.ok) throw new Error(kind.includes("json") ? (await answer.json()).error : await answer.text());
  if (kind.includes("json")) return answer.json();
  return kind.includes("csv") ? answer.text() : new Float32Array(await answer.arrayBuffer());
}

const say = (text) => { byId("said").textContent = text; };

function guarded(work) {  // an error is shown, and the page continues
  return async (...given) => {
    byId("failed").hidden = true;
    try {
      await work(...given);
    } catch (error) {
      byId("failed").textContent = error.message;
      byId("failed").hidden = false;
    }
  };
}

function offer(text, name, kind) {  // as a file, where the browser puts such
  const link = element("a", undefined, { download: name, href: URL.createObjectURL(new Blob([text], { type: kind })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// ---- colors

const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
const foreground = () => getComputedStyle(document.body).color.match(/\d+/g).slice(0, 3).map(Number);

function ofLevel(k, n) {
  const { palette } = state.about;
  if (n <= palette.length) return palette[k] === "#000000" ? foreground() : rgb(palette[k]);
  const hue = (k * 137.508) % 360, light = 0.42 + 0.16 * (k % 3), a = 0.62 * Math.min(light, 1 - light);
  return [0, 8, 4].map((m) => {
    const t = (m + hue / 30) % 12;
    return Math.round(255 * (light - a * Math.max(-1, Math.min(t - 3, 9 - t, 1))));
  });
}

function ofShare(share) {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1), k = Math.min(Math.floor(place), RAMP.length - 2);
  const [a, b] = [rgb(RAMP[k]), rgb(RAMP[k + 1])];
  return a.map((value, m) => Math.round(value + (b[m] - value) * (place - k)));
}

const inWords = (column, value) =>
  column.kind === "date" ? new Date(value * 864e5).toISOString().slice(0, 10) : number(value);

function ends(values) {  // a few far values must not take all colors: the ends are the 2nd and the 98th of a hundred
  const known = values.filter(Number.isFinite).sort();
  return known.length ? [known[Math.floor(0.02 * (known.length - 1))], known[Math.ceil(0.98 * (known.length - 1))]] : [0, 1];
}

function paint() {
  const { column, values } = state, n = state.about.n, colors = new Uint8Array(4 * n);
  const [low, high] = column.kind === "category" ? [0, 0] : ends(values);
  const levels = column.levels.map((_, k) => ofLevel(k, column.levels.length));
  const ramp = Array.from({ length: 256 }, (_, k) => ofShare(k / 255));
  for (let i = 0; i < n; i += 1) {
    const value = values[i], known = !Number.isNaN(value);
    const shade = column.kind === "category" ? levels[value] : ramp[Math.round(255 * Math.min(Math.max((value - low) / (high - low || 1), 0), 1))];
    colors.set(known ? [...shade, INK] : MISSING, 4 * i);
  }
  state.map.rim = foreground().map((value) => value / 255);
  state.map.setColors(colors);
  legend(low, high, levels);
}

function legend(low, high, levels) {
  const { column } = state, box = byId("legend");
  byId("colored").textContent = named(column);
  byId("range").hidden = column.kind !== "number";
  if (column.kind === "category") {
    box.replaceChildren(...column.levels.map((level, k) => {
      const made = element("button", undefined, { type: "button", "aria-pressed": String(!state.off.has(k)), title: "Show or hide" });
      const dot = element("i");
      dot.style.background = `rgb(${levels[k].join(" ")})`;
      made.append(dot, level);
      made.addEventListener("click", () => {
        if (!state.off.delete(k)) state.off.add(k);
        made.setAttribute("aria-pressed", String(!state.off.has(k)));
        look();
      });
      return made;
    }));
    return;
  }
  const strip = element("canvas", undefined, { width: 256, height: 1, "aria-hidden": "true" }), pen = strip.getContext("2d");
  for (let k = 0; k < 256; k += 1) { pen.fillStyle = `rgb(${ofShare(k / 255).join(" ")})`; pen.fillRect(k, 0, 1, 1); }
  const words = element("div", undefined, { class: "ends" });
  words.append(element("span", inWords(column, low)), element("span", inWords(column, high)));
  box.replaceChildren(strip, words);
}

function look() {  // who is drawn, and how: the filter of the legend, then the selection
  const { values, column, selected, only, off, low, high } = state, looks = new Uint8Array(state.about.n);
  for (let i = 0; i < looks.length; i += 1) {
    const value = values[i];
    const passes = column.kind === "category"
      ? !off.has(value) : (low === null || value >= low) && (high === null || value <= high);
    const mine = selected.has(i);
    looks[i] = !passes || (only && !mine) ? HIDDEN : !selected.size ? PLAIN : mine ? MARKED : FAINT;
  }
  state.map.setLooks(looks);
  mark();
}

const named = (column) =>
  (state.about.models.length > 1 && column.of !== "data" && column.of !== "" ? `${column.of}: ${column.name}` : column.name);

async function colorBy(choice) {
  Object.assign(state, { off: new Set(), low: null, high: null });
  byId("low").value = byId("high").value = "";
  if (choice === "influence") {
    const { row, output } = state.chosen;
    state.column = { name: `influence on ${state.chosen.name}`, kind: "number", levels: [], of: "data" };
    state.values = await ask("influence", { model: state.model, row, output });
  } else {
    state.column = state.about.columns[Number(choice)];
    state.values = await ask("column", { k: choice });
  }
  paint();
  look();
}

async function cutTree(k) {  // clusters of the tree at another level
  byId("n-clusters").textContent = k;
  const values = await ask("cut", { model: state.model, k });
  if (k !== Number(byId("level").value)) return;  // the slider has moved on
  const levels = Array.from({ length: k }, (_, cluster) => String(cluster));
  Object.assign(state, { off: new Set(), low: null, high: null, values });
  state.column = { name: `${k} clusters`, kind: "category", levels, of: "data" };
  paint();
  look();
}

function offerTree() {
  const most = state.about.models[state.model].most_clusters;
  byId("tree").hidden = most === null;
  if (most === null) return;
  byId("level").max = most;
  byId("level").value = most / 2;  // as many as the fit has
  byId("n-clusters").textContent = most / 2;
}

function offerColors(chosen) {
  const select = byId("color"), groups = byId("groups"), before = select.value, group = groups.value;
  select.replaceChildren();
  groups.replaceChildren();
  state.about.columns.forEach((column, k) => {
    if (column.kind !== "text") select.append(element("option", named(column), { value: k }));
    if (column.kind === "category") groups.append(element("option", named(column), { value: k }));
  });
  if (state.chosen && state.about.models[state.model].sums) {
    select.append(element("option", `influence on ${state.chosen.name}`, { value: "influence" }));
  }
  select.value = chosen ?? before;
  if (group) groups.value = group;
}

// ---- the pointer, the keys

function mark() {  // the ring around what is pointed at or chosen, and the lasso
  const ratio = devicePixelRatio || 1, pen = above.getContext("2d");
  above.width = canvas.clientWidth * ratio;
  above.height = canvas.clientHeight * ratio;
  pen.scale(ratio, ratio);
  pen.strokeStyle = getComputedStyle(document.body).color;
  for (const [i, wide] of [[state.chosen?.row, 3], [state.under, 1.5]]) {
    if (i === null || i === undefined) continue;
    const [x, y] = state.map.toScreen(i);
    pen.lineWidth = wide;
    pen.beginPath();
    pen.arc(x, y, 8, 0, 7);
    pen.stroke();
  }
  if (state.loop) {
    pen.setLineDash([5, 4]);
    pen.lineWidth = 1.5;
    pen.beginPath();
    state.loop.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.closePath();
    pen.stroke();
  }
}

async function pointAt(i) {
  if (i === state.under) return;
  state.under = i;
  mark();
  if (i === null) { tip.hidden = true; return; }
  const found = await ask("row", { row: i });
  if (state.under !== i) return;
  tip.replaceChildren(...tipPanel(found));
  tip.hidden = false;
  const [x, y] = state.map.toScreen(i);
  tip.style.left = `${Math.max(4, x + 16 + tip.offsetWidth > canvas.clientWidth ? x - 16 - tip.offsetWidth : x + 16)}px`;
  // Above or below, whichever has more room: pictures come in later and make it higher.
  const below = y < canvas.clientHeight / 2;
  tip.style.top = below ? `${y + 12}px` : "auto";
  tip.style.bottom = below ? "auto" : `${canvas.clientHeight - y + 12}px`;
}

async function choose(row, output = undefined) {
  const asked = state.asked += 1, { model } = state, found = await ask("row", { row });
  state.chosen = { row, name: found.name, output: "" };
  byId("chosen").hidden = false;
  byId("chosen-name").textContent = found.name;
  byId("row").replaceChildren(...rowPanel(found));
  byId("why").replaceChildren();
  byId("effects").replaceChildren();
  say(`Chosen: ${found.name}`);
  mark();
  if (state.about.models[model].sums) {
    const why = await ask("why", { model, row, ...(output === undefined ? {} : { output }) });
    if (asked !== state.asked) return;
    state.chosen.output = why.output;
    const again = guarded((wanted) => choose(row, wanted));
    byId("why").replaceChildren(...whyPanel(why, found.image, guarded(choose), again));
  } else {
    byId("why").replaceChildren(element("p", "The answers of this model are not sums over rows, so there are no reasons by rows.", { class: "soft" }));
  }
  offerColors();
  if (byId("color").value === "influence") await colorBy("influence");
  const effects = await ask("effects", { model, row });
  if (asked === state.asked) byId("effects").replaceChildren(...effectsPanel(effects));
}

function select(rows, how) {
  state.selected = new Set(rows);
  if (!rows.length) setOnly(false);
  const noun = state.about.noun, words = `${rows.length} ${noun}${rows.length === 1 ? "" : "s"} selected`;
  byId("selection").hidden = !rows.length;
  byId("count").textContent = words;
  const shown = rows.slice(0, NAMES_SHOWN).map((row) => nameButton(noun === "row" ? `row ${row}` : `image ${row}`, row, guarded(choose)));
  byId("some").replaceChildren(...shown, ...(rows.length > NAMES_SHOWN ? [element("span", "…")] : []));
  say(rows.length ? `${words} ${how}` : how);
  look();
}

function setOnly(only) {
  state.only = only;
  byId("only").setAttribute("aria-pressed", String(only));
}

function listenToPointer() {
  let last = null, moved = 0;
  const place = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = place(event);
    moved = 0;
    state.loop = state.lassoing || event.shiftKey ? [last] : null;
  });
  canvas.addEventListener("pointermove", (event) => {
    const here = place(event);
    if (!last) { guarded(pointAt)(state.map.nearest(...here, REACH)); return; }
    moved += Math.abs(here[0] - last[0]) + Math.abs(here[1] - last[1]);
    if (state.loop) state.loop.push(here); else state.map.pan(here[0] - last[0], here[1] - last[1]);
    last = here;
    tip.hidden = true;
    mark();
  });
  canvas.addEventListener("pointerup", (event) => {
    const here = place(event), { loop } = state;
    last = null;
    state.loop = null;
    if (loop && moved > 4) select(state.map.inside(loop), "by the lasso");
    else if (moved <= 4) {
      const found = state.map.nearest(...here, REACH);
      if (found !== null) guarded(choose)(found);
    }
    mark();
  });
  canvas.addEventListener("pointerleave", () => { if (!last) pointAt(null); });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    state.map.zoom(Math.exp(-0.0015 * event.deltaY), ...place(event));
    mark();
  }, { passive: false });
  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  canvas.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const from = state.under ?? state.chosen?.row ?? 0;
    if (ways[event.key]) guarded(pointAt)(state.under === null ? from : state.map.beside(from, ...ways[event.key]));
    else if (event.key === "Enter" && state.under !== null) guarded(choose)(state.under);
    else if (event.key === "+" || event.key === "-") { state.map.zoom(event.key === "+" ? 1.3 : 1 / 1.3); mark(); }
    else if (event.key === "Escape") pointAt(null);
    else return;
    event.preventDefault();
  });
}

// ---- buttons

function listenToControls() {
  const on = (id, kind, work) => byId(id).addEventListener(kind, guarded(async (event) => { event.preventDefault(); await work(event); }));
  on("color", "change", () => colorBy(byId("color").value));
  on("model", "change", async () => {
    state.model = Number(byId("model").value);
    state.map.setPlaces(await ask("places", { model: state.model }));
    state.map.fit();
    describe();
    offerTree();
    look();
    if (state.chosen) await choose(state.chosen.row);
  });
  on("search", "submit", async () => {
    const rows = await ask("search", {}, { text: byId("text").value });
    select(rows, rows.length ? `hold “${byId("text").value}”` : `Nothing holds “${byId("text").value}”`);
  });
  on("lasso", "click", () => {
    state.lassoing = !state.lassoing;
    byId("lasso").setAttribute("aria-pressed", String(state.lassoing));
  });
  on("level", "input", () => cutTree(Number(byId("level").value)));
  on("fit", "click", () => { state.map.fit(); requestAnimationFrame(mark); });
  on("clear", "click", () => select([], ""));
  on("only", "click", () => { setOnly(!state.only); look(); });
  on("export", "click", async () => {
    const rows = [...state.selected].sort((a, b) => a - b);
    offer(await ask("export", {}, { rows }), "selection.csv", "text/csv");
    say(`${rows.length} rows exported as selection.csv`);
  });
  on("name-concept", "submit", async () => {
    const body = { model: state.model, name: byId("concept-name").value, rows: [...state.selected], groups: Number(byId("groups").value || -1) };
    say("Looking for the concept …");
    const found = await ask("concept", {}, body);
    state.about.columns[found.column] = found.about;
    offerColors();
    const panel = element("div");
    panel.append(...profilePanel(found));
    byId("profiles").prepend(panel);
    byId("concepts").hidden = false;
    byId("concept-name").value = "";
    say(`Named: ${found.name}`);
  });
  on("save-concepts", "click", async () => offer(JSON.stringify(await ask("concepts"), null, 2), "concepts.json", "application/json"));
  for (const id of ["low", "high"]) {
    on(id, "input", () => { state[id] = byId(id).value === "" ? null : Number(byId(id).value); look(); });
  }
}

function describe() {
  const { title, n, noun, models } = state.about, model = models[state.model];
  byId("title").textContent = title;
  document.title = `Mercer: ${title}`;
  say(`${n.toLocaleString("en")} ${noun}s, ${model.name}: ${model.map}.`);
}

async function begin() {
  state.map = new PointMap(canvas);
  canvas.pointMap = state.map;  // for those who look at the page from the console
  state.about = await ask("about");
  byId("which").hidden = state.about.models.length < 2;
  state.about.models.forEach((model, k) => byId("model").append(element("option", model.name, { value: k })));
  listenToPointer();
  listenToControls();
  const first = state.about.columns.findIndex((column) => column.kind !== "text");
  offerColors(String(first));
  state.map.setPlaces(await ask("places", { model: 0 }));
  await colorBy(String(first));
  state.map.fit();
  describe();
  offerTree();
  new ResizeObserver(() => { state.map.resized(); mark(); }).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  requestAnimationFrame(() => { document.body.dataset.ready = "yes"; });
}

guarded(begin)();
