// The map: points on a canvas, asked by pointer or keyboard. Texts of the data are only ever set as text.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("map-data").textContent);
  const byId = (id) => document.getElementById(id);
  const canvas = byId("map-canvas"), tip = byId("map-tip"), said = byId("map-said");
  const select = byId("map-color"), legend = byId("map-legend"), panel = byId("map-chosen");
  const n = data.x.length;
  const RAMP = ["#443983", "#31688e", "#21918c", "#35b779", "#90d743", "#f0dc30"];
  const MISSING = "rgb(140 146 153 / .45)", REACH = 24, MARGIN = 18, IN_TIP = 8;
  let under = null, chosen = null, places = [], colors = [];

  // ---- what there is to say about a sample

  const shown = (value) => value === null ? "–" : String(value);
  const valueOf = (column, i) => column.kind === "category"
    ? (column.codes[i] === null ? "–" : column.levels[column.codes[i]]) : shown(column.values[i]);

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  function picture(place) {
    const { width, height, columns } = data.sprite;
    const made = element("canvas", undefined, { width, height, "aria-hidden": "true" });
    const draw = () => made.getContext("2d").drawImage(
      sheet, width * (place % columns), height * Math.floor(place / columns), width, height, 0, 0, width, height);
    if (sheet.complete) draw(); else sheet.addEventListener("load", draw);
    return made;
  }

  function valuesTable(headings, columns) {
    const table = element("table");
    if (headings) {
      const line = table.createTHead().insertRow();
      for (const heading of headings) line.append(element("th", heading, { scope: "col" }));
    }
    const body = table.createTBody();
    for (const [name, ...values] of columns) {
      const line = body.insertRow();
      line.append(element("th", name, { scope: "row" }), ...values.map((value) => element("td", value)));
    }
    return table;
  }

  // Where all columns are texts there is none to color by.
  const coloring = () => (select.value === "" ? undefined : data.columns[Number(select.value)]);

  function describe(i) {
    const column = coloring();
    return data.names[i] + (column ? `, ${column.name}: ${valueOf(column, i)}` : "");
  }

  // ---- colors

  function mix(a, b, t) {
    const part = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
    return `rgb(${[0, 1, 2].map((k) => Math.round(part(a, k) + (part(b, k) - part(a, k)) * t)).join(" ")})`;
  }

  function ramp(share) {
    const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1), k = Math.min(Math.floor(place), RAMP.length - 2);
    return mix(RAMP[k], RAMP[k + 1], place - k);
  }

  function entry(color, text) {
    const made = element("span", undefined), dot = element("i");
    dot.style.background = color === "#000000" ? "currentColor" : color;
    made.append(dot, text);
    return made;
  }

  function colorByNumber(column) {
    const known = column.values.filter((value) => value !== null).sort((a, b) => a - b);
    // A few far values must not take all colors: the ends are the 2nd and the 98th of a hundred.
    const at = (share) => known[Math.round(share * (known.length - 1))];
    const low = at(0.02), spread = (at(0.98) - low) || 1;
    colors = column.values.map((value) => value === null ? MISSING : ramp((value - low) / spread));
    const made = element("span", String(low ?? "–")), bar = element("i", undefined, { class: "ramp" });
    bar.style.background = `linear-gradient(90deg, ${RAMP.join(", ")})`;
    made.append(bar, String(at(0.98) ?? "–"));
    legend.append(made);
    return column.values.includes(null);
  }

  function colorByLevel(column) {
    // Colors that repeat would say that two are the same; past them all are one.
    const own = column.levels.length > data.palette.length ? data.palette.length - 1 : column.levels.length;
    const grey = data.palette[data.palette.length - 1];
    const colorOf = (code) => code === null ? MISSING : code < own ? data.palette[code] : grey;
    colors = column.codes.map(colorOf);
    column.levels.slice(0, own).forEach((level, code) => legend.append(entry(colorOf(code), level)));
    if (own < column.levels.length) legend.append(entry(grey, `${column.levels.length - own} others`));
    return column.codes.includes(null);
  }

  function color() {
    legend.replaceChildren();
    const column = coloring();
    if (!column) colors = new Array(n).fill(data.palette[0]);
    else if ((column.kind === "number" ? colorByNumber : colorByLevel)(column)) legend.append(entry(MISSING, "missing"));
    draw();
  }

  // ---- drawing

  function layOut() {
    const { clientWidth: width, clientHeight: height } = canvas, sharp = window.devicePixelRatio || 1;
    canvas.width = width * sharp;
    canvas.height = height * sharp;
    const w = Math.max(...data.x) || 1e-9, h = Math.max(...data.y) || 1e-9;
    const scale = Math.min((width - 2 * MARGIN) / w, (height - 2 * MARGIN) / h);
    places = data.x.map((x, i) => [
      width / 2 + (x - w / 2) * scale, height / 2 - (data.y[i] - h / 2) * scale,
    ]);
    draw();
  }

  function ring(context, i, radius, width) {
    context.globalAlpha = 1;
    context.strokeStyle = getComputedStyle(canvas).color;
    context.lineWidth = width;
    context.beginPath();
    context.arc(...places[i], radius, 0, 2 * Math.PI);
    context.stroke();
  }

  function draw() {
    const context = canvas.getContext("2d"), sharp = window.devicePixelRatio || 1;
    const radius = Math.min(Math.max(70 / Math.sqrt(n), 2), 5);
    // The palette's black is the color of text: white on dark screens.
    const text = getComputedStyle(canvas).color;
    context.setTransform(sharp, 0, 0, sharp, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < n; i++) {
      context.globalAlpha = 0.85;
      context.fillStyle = colors[i] === "#000000" ? text : colors[i];
      context.beginPath();
      context.arc(...places[i], radius, 0, 2 * Math.PI);
      context.fill();
    }
    if (chosen !== null) ring(context, chosen, radius + 4, 2.5);
    if (under !== null) ring(context, under, radius + 2, 1.2);
  }

  // ---- pointing and choosing

  function nearest(x, y) {
    let best = null, least = REACH ** 2;
    places.forEach(([px, py], i) => {
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [i, distance];
    });
    return best;
  }

  function point(i, speak) {
    under = i;
    tip.hidden = i === null;
    if (i !== null) {
      tip.replaceChildren(element("strong", data.names[i]));
      if (data.columns.length) {
        tip.append(valuesTable(null, data.columns.slice(0, IN_TIP).map((column) => [column.name, valueOf(column, i)])));
      }
      if (data.sprite) tip.append(picture(i));
      const [x, y] = places[i], room = canvas.clientWidth;
      tip.style.left = `${Math.max(0, Math.min(x + 14, room - tip.offsetWidth))}px`;
      tip.style.top = `${y + 14 + tip.offsetHeight > canvas.clientHeight ? Math.max(0, y - 14 - tip.offsetHeight) : y + 14}px`;
      if (speak) said.textContent = describe(i);
    }
    draw();
  }

  function choose(i) {
    chosen = i;
    panel.replaceChildren();
    if (i !== null) {
      panel.append(element("h3", data.names[i]), ...(data.sprite ? pictures(i) : [details(i)]));
      const like = data.landmarks ? `; most like ${landmarksOf(i).map(([k]) => data.landmarks.names[k]).join(", ")}` : "";
      said.textContent = `Chosen: ${describe(i)}${like}`;
    } else said.textContent = "";
    draw();
  }

  const landmarksOf = (i) => data.landmarks.top[i].map((k, place) => [k, data.landmarks.likeness[i][place]]);

  function captioned(place, ...lines) {
    const made = element("figure", undefined, { class: "sample" }), caption = element("figcaption");
    lines.forEach((line, k) => caption.append(...(k ? [element("br"), line] : [line])));
    made.append(picture(place), caption);
    return made;
  }

  function pictures(i) {
    const row = element("div", undefined, { class: "samples" });
    row.append(captioned(i, data.names[i]));
    if (data.landmarks) {
      // Landmarks follow the samples on the sheet.
      row.append(...landmarksOf(i).map(([k, likeness]) =>
        captioned(n + k, data.landmarks.names[k], `likeness ${likeness.toFixed(3)}`)));
    }
    const facts = data.columns.map((column) => [column.name, valueOf(column, i)]);
    return facts.length ? [row, valuesTable(null, facts)] : [row];
  }

  function details(i) {
    const like = data.landmarks ? landmarksOf(i) : [];
    const theirs = data.landmarks && data.landmarks.columns;
    const lines = data.columns.map((column, j) =>
      [column.name, valueOf(column, i), ...(theirs ? like.map(([k]) => valueOf(theirs[j], k)) : [])]);
    const box = element("div", undefined, { class: "scroll", tabindex: "0", role: "region", "aria-label": data.names[i] });
    const heading = ([k, likeness]) => `${data.landmarks.names[k]}, likeness ${likeness.toFixed(3)}`;
    box.append(valuesTable(theirs ? ["", data.names[i], ...like.map(heading)] : null, lines));
    if (like.length && !theirs) box.append(element("p", `Most like: ${like.map(heading).join("; ")}.`));
    return box;
  }

  // The next sample in a direction: near, and not far to the side.
  function neighbor(i, dx, dy) {
    let best = i, least = Infinity;
    places.forEach(([x, y], j) => {
      const along = (x - places[i][0]) * dx + (y - places[i][1]) * dy;
      const across = Math.abs((x - places[i][0]) * dy) + Math.abs((y - places[i][1]) * dx);
      const cost = along + 2 * across;
      if (j !== i && along > 0 && across <= along && cost < least) [best, least] = [j, cost];
    });
    return best;
  }

  const MOVES = {
    ArrowRight: (i) => neighbor(i, 1, 0), ArrowLeft: (i) => neighbor(i, -1, 0),
    ArrowDown: (i) => neighbor(i, 0, 1), ArrowUp: (i) => neighbor(i, 0, -1),
    PageDown: (i) => (i + 1) % n, PageUp: (i) => (i + n - 1) % n, Home: () => 0, End: () => n - 1,
  };

  canvas.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return; // the browser's own
    if (MOVES[event.key]) point(under === null ? chosen ?? 0 : MOVES[event.key](under), true);
    else if (event.key === "Enter" && under !== null) choose(under);
    else if (event.key === "Escape") { point(null); choose(null); }
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => point(nearest(event.offsetX, event.offsetY), false));
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("blur", () => point(null));
  canvas.addEventListener("click", (event) => {
    const i = nearest(event.offsetX, event.offsetY);
    point(i, false);
    if (i !== null) choose(i);
  });

  // ---- beginning

  const sheet = new Image();
  if (data.sprite) sheet.src = data.sprite.src;
  data.columns.forEach((column, j) => {
    if (column.kind !== "text") select.append(element("option", column.name, { value: j }));
  });
  if (data.color === null) byId("map").querySelector(".controls").hidden = true;
  else select.value = data.color;
  select.addEventListener("change", color);
  document.querySelector(".still").hidden = true;
  byId("map").hidden = false;
  colors = new Array(n).fill(data.palette[0]);
  new ResizeObserver(layOut).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  layOut();
  color();
})();
