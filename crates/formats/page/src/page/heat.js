// The heat map: when requests ended and how long they had taken, and below it, on the same axis, what threads did.

const heat = (() => {
  const map = data.heat;
  const canvas = byId("heat");
  if (!canvas) return null;
  const [tip, said, reset] = [byId("heat-tip"), byId("heat-said"), byId("heat-reset")];
  const [left, right, top, laneHeight, laneGap, axis] = [64, 10, 10, 14, 8, 26];
  const lanes = data.lanes.threads;

  // As they are kept: differences become places again.
  const cells = [];
  for (let at = 0, column = 0; at < map.cells.length; at += 3) {
    column += map.cells[at];
    cells.push([column, map.cells[at + 1], map.cells[at + 2]]);
  }
  const shares = lanes.map((lane) => lane.shares.map((sparse) => {
    const all = [];
    for (let at = 0, column = 0; at < sparse.length; at += 2) all.push([column += sparse[at], sparse[at + 1] / 1000]);
    return all;
  }));
  let before = 0;
  const taken = data.lanes.taken.map(([lane, after, length, activity, who]) => {
    before += after;
    return { lane, at: before, length, activity, who: data.lanes.who[who] };
  });

  const rows = cells.map((cell) => cell[1]);
  const edge = (rows, pick) => rows.reduce((a, b) => pick(a, b), rows[0] ?? 0);
  const whole = {
    t0: 0, t1: Math.max(data.span, map.column),
    r0: edge(rows, Math.min) - 1, r1: edge(rows, Math.max) + 2,
  };
  let view = { ...whole };
  let drawn = null;
  let cursor = null;
  let drag = null;

  const latency = (row) => 2 ** (row / map.per_doubling);
  const rowOf = (nanos) => Math.floor(Math.log2(Math.max(1, nanos)) * map.per_doubling + 1e-9);

  function layout() {
    const width = canvas.clientWidth;
    const height = width < 600 ? 240 : 320;
    const strip = lanes.length ? laneGap + 16 + lanes.length * (laneHeight + 4) : 0;
    return { width, height, total: top + height + strip + axis, plot: width - left - right, lanesAt: top + height + laneGap + 16 };
  }

  /** Cells put together until each is some pixels large. */
  function gather(size) {
    const perColumn = size.plot * map.column / (view.t1 - view.t0);
    const perRow = size.height / (view.r1 - view.r0);
    const [columns, rows] = [Math.max(1, Math.ceil(3 / perColumn)), Math.max(1, Math.ceil(3 / perRow))];
    const counts = new Map();
    let most = 1;
    for (const [column, row, count] of cells) {
      if ((column + 1) * map.column <= view.t0 || column * map.column >= view.t1 || row + 1 <= view.r0 || row >= view.r1) continue;
      const key = Math.floor(column / columns) * 65536 + Math.floor(row / rows);
      const sum = (counts.get(key) || 0) + count;
      counts.set(key, sum);
      most = Math.max(most, sum);
    }
    return { columns, rows, counts, most };
  }

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(`--${name}`).trim();
    const rgb = (name) => [1, 3, 5].map((at) => parseInt(get(name).slice(at, at + 2), 16));
    const stops = ["heat-low", "heat-mid", "heat-high"].map(rgb);
    const ramp = (part) => {
      const [from, to, at] = part < 0.5 ? [stops[0], stops[1], part * 2] : [stops[1], stops[2], part * 2 - 1];
      return `rgb(${from.map((low, i) => Math.round(low + (to[i] - low) * at)).join(" ")})`;
    };
    return { get, ramp };
  }

  const isWhole = () => Object.keys(whole).every((key) => view[key] === whole[key]);

  // All but the cursor, which alone is drawn anew when it moves.
  const picture = document.createElement("canvas");

  function draw() {
    const size = layout();
    const scale = window.devicePixelRatio || 1;
    canvas.style.height = `${size.total}px`;
    picture.width = canvas.width = Math.round(size.width * scale);
    picture.height = canvas.height = Math.round(size.total * scale);
    const pen = picture.getContext("2d");
    pen.scale(scale, scale);
    const paint = colours();
    const x = (t) => left + (t - view.t0) / (view.t1 - view.t0) * size.plot;
    const y = (row) => top + size.height - (row - view.r0) / (view.r1 - view.r0) * size.height;
    drawn = { size, x, y, ...gather(size) };
    pen.font = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
    drawGrid(pen, paint, size, x, y);
    pen.save();
    pen.beginPath();
    pen.rect(left, top, size.plot, size.total);
    pen.clip();
    for (const [at, length] of map.holes) hatch(pen, paint, x(at), top, x(at + length) - x(at), size.height);
    for (const [key, count] of drawn.counts) {
      const [column, row] = [Math.floor(key / 65536) * drawn.columns, key % 65536 * drawn.rows];
      // Whole pixels, so that neighbours touch and nothing shines through.
      const [from, to] = [Math.floor(x(column * map.column)), Math.floor(x((column + drawn.columns) * map.column))];
      const [low, high] = [Math.floor(y(row)), Math.floor(y(row + drawn.rows))];
      pen.fillStyle = paint.ramp(drawn.most > 1 ? Math.log(count) / Math.log(drawn.most) : 0.5);
      pen.fillRect(from, high, Math.max(2, to - from), Math.max(2, low - high));
    }
    drawLanes(pen, paint, size, x);
    pen.restore();
    lanes.forEach((lane, n) => {
      pen.fillStyle = paint.get("quiet");
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      pen.fillText(lane.name, left - 6, size.lanesAt + n * (laneHeight + 4) + laneHeight / 2, left - 8);
    });
    reset.disabled = isWhole();
    byId("heat-most").textContent = String(drawn.most);
    const scalePen = byId("heat-scale").getContext("2d");
    for (let n = 0; n < 96; n++) {
      scalePen.fillStyle = paint.ramp(n / 95);
      scalePen.fillRect(n, 0, 1, 10);
    }
    show();
  }

  /** The picture, with the cursor over it. */
  function show() {
    // A window that is not laid out yet has no size; it is drawn again when it has one.
    if (!picture.width || !picture.height) return;
    const pen = canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(picture, 0, 0);
    const scale = canvas.width / drawn.size.width;
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.save();
    pen.beginPath();
    pen.rect(left, top, drawn.size.plot, drawn.size.total);
    pen.clip();
    drawCursor(pen, colours());
    pen.restore();
  }

  function drawGrid(pen, paint, size, x, y) {
    pen.strokeStyle = paint.get("grid");
    pen.fillStyle = paint.get("quiet");
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const tick of latencyTicks(latency(view.r0), latency(view.r1), size.height / 22)) {
      const at = Math.round(y(Math.log2(tick) * map.per_doubling)) + 0.5;
      if (at < top || at > top + size.height) continue;
      line(pen, left, at, left + size.plot, at);
      pen.fillText(roundTime(tick), left - 8, at);
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const step = niceStep(view.t1 - view.t0, size.plot / 110);
    for (let t = Math.ceil((view.t0 + data.offset) / step) * step - data.offset; t <= view.t1; t += step) {
      line(pen, Math.round(x(t)) + 0.5, top, Math.round(x(t)) + 0.5, size.total - axis);
      pen.fillText(moment(t, step), Math.min(Math.max(x(t), left), size.width - 24), size.total - axis + 8);
    }
    pen.strokeStyle = paint.get("line");
    pen.strokeRect(left + 0.5, top + 0.5, size.plot - 1, size.height - 1);
    if (lanes.length) {
      pen.textAlign = "left";
      pen.textBaseline = "bottom";
      pen.fillText(size.width < 600 ? "what the threads did" : "what the threads did meanwhile", left, size.lanesAt - 2);
    }
  }

  function line(pen, x0, y0, x1, y1) {
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.stroke();
  }

  /** A hole: nothing is known. */
  function hatch(pen, paint, x, y, width, height) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, Math.max(1, width), height);
    pen.clip();
    pen.fillStyle = paint.get("unknown");
    pen.fillRect(x, y, width, height);
    pen.strokeStyle = paint.get("hole");
    // The lines of neighbours go on in each other.
    for (let at = Math.floor((x + y) / 6) * 6 - y - height; at < x + width; at += 6) line(pen, at, y + height, at + height, y);
    pen.restore();
  }

  function drawLanes(pen, paint, size, x) {
    const column = data.lanes.column;
    lanes.forEach((_, n) => {
      const at = size.lanesAt + n * (laneHeight + 4);
      pen.fillStyle = paint.get("ran");
      pen.fillRect(left, at, size.plot, laneHeight);
      const filled = new Map();
      shares[n].forEach((share, activity) => {
        const key = data.lanes.activities[activity][0];
        pen.fillStyle = paint.get(key);
        for (const [place, part] of share) {
          const [from, to] = [Math.floor(x(place * column)), Math.floor(x((place + 1) * column))];
          if (to < left || from > left + size.plot) continue;
          const below = filled.get(place) || 0;
          const box = [from, at + laneHeight * (1 - below - part), Math.max(1, to - from), laneHeight * part];
          if (key === "unknown") hatch(pen, paint, ...box);
          else pen.fillRect(...box);
          filled.set(place, below + part);
        }
      });
    });
    // Near enough, each absence has its own place: it is drawn as it was, over the shares of its column.
    if (x(column) - x(0) < 6) return;
    for (const it of taken) {
      const at = size.lanesAt + it.lane * (laneHeight + 4);
      pen.fillStyle = paint.get(data.lanes.activities[it.activity][0]);
      pen.fillRect(x(it.at), at, Math.max(1, x(it.at + it.length) - x(it.at)), laneHeight);
    }
  }

  function drawCursor(pen, paint) {
    pen.strokeStyle = paint.get("text");
    pen.lineWidth = 1.5;
    if (drag && drag.moved) {
      pen.strokeRect(Math.min(drag.x0, drag.x1), Math.min(drag.y0, drag.y1), Math.abs(drag.x1 - drag.x0), Math.abs(drag.y1 - drag.y0));
    } else if (cursor) {
      const [from, to] = [drawn.x(cursor.t0), drawn.x(cursor.t1)];
      pen.strokeRect(from, drawn.y(cursor.r1), to - from, drawn.y(cursor.r0) - drawn.y(cursor.r1));
    }
  }

  /** The cell at a place of the canvas, as it is drawn. */
  function cellAt(x, y) {
    const { size } = drawn;
    if (x < left || x > left + size.plot || y < top || y > top + size.height) return null;
    const t = view.t0 + (x - left) / size.plot * (view.t1 - view.t0);
    const row = view.r0 + (top + size.height - y) / size.height * (view.r1 - view.r0);
    return cell(Math.floor(t / map.column / drawn.columns), Math.floor(row / drawn.rows));
  }

  function cell(column, row) {
    const count = drawn.counts.get(column * 65536 + row) || 0;
    const [t0, t1] = [column * drawn.columns * map.column, (column + 1) * drawn.columns * map.column];
    const [r0, r1] = [row * drawn.rows, (row + 1) * drawn.rows];
    const within = ([end, length]) => end >= t0 && end < t1 && rowOf(length) >= r0 && rowOf(length) < r1;
    return { column, row, count, t0, t1, r0, r1, seen: count ? map.seen.filter(within).slice(0, 5) : [] };
  }

  function describe(it) {
    const step = (it.t1 - it.t0) / 2;
    const when = `${moment(it.t0, step)} to ${moment(it.t1, step)}`;
    const took = `${time(latency(it.r0))} to ${time(latency(it.r1))}`;
    const requests = it.count === 1 ? "1 request" : `${it.count || "no"} requests`;
    return { head: `${requests} took ${took}`, when: `ended ${when} after the begin` };
  }

  function requestLine([, length, name, whose, waterfall]) {
    const owner = whose === null ? "" : `, ${map.whose[whose]}`;
    const rank = waterfall === null || !byId(`request-${waterfall + 1}`) ? "" : ` (slowest ${waterfall + 1}, below)`;
    return `${name}: ${time(length)}${owner}${rank}`;
  }

  function showTip(x, y, head, lines) {
    tip.replaceChildren(element("p", {}, element("strong", {}, head)));
    const list = element("ol");
    lines.forEach((text, n) => (n === 0 ? tip : list).append(element(n === 0 ? "p" : "li", {}, text)));
    if (lines.length > 1) tip.append(list);
    tip.hidden = false;
    const room = canvas.clientWidth;
    tip.style.left = `${Math.max(0, Math.min(x + 14, room - tip.offsetWidth))}px`;
    tip.style.top = `${y + 18}px`;
  }

  function hover(x, y) {
    const it = cellAt(x, y);
    cursor = it && it.count ? it : null;
    if (cursor) {
      const { head, when } = describe(it);
      showTip(x, y, head, [when + (it.seen.length ? "; the slowest:" : ""), ...it.seen.map(requestLine)]);
    } else if (!hoverHole(x, y) && !hoverLane(x, y)) tip.hidden = true;
    show();
  }

  function hoverHole(x, y) {
    const { size } = drawn;
    const t = timeAt(x);
    if (y < top || y > top + size.height || x < left) return false;
    const hole = map.holes.find(([at, length]) => t >= at && t < at + length);
    if (hole) showTip(x, y, "not known", [hole[2]]);
    return Boolean(hole);
  }

  const timeAt = (x) => view.t0 + (x - left) / drawn.size.plot * (view.t1 - view.t0);

  function hoverLane(x, y) {
    const n = Math.floor((y - drawn.size.lanesAt) / (laneHeight + 4));
    if (!lanes[n] || x < left || x > left + drawn.size.plot || y < drawn.size.lanesAt) return false;
    const t = timeAt(x);
    const slack = 3 * (view.t1 - view.t0) / drawn.size.plot;
    const near = taken.filter((it) => it.lane === n && t >= it.at - slack && t < it.at + it.length + slack);
    near.sort((a, b) => b.length - a.length);
    const column = Math.floor(t / data.lanes.column);
    const parts = shares[n].flatMap((share, activity) => {
      const found = share.find(([place]) => place === column);
      return found ? [`${data.lanes.activities[activity][1]} ${percent(found[1], found[1] < 0.1 ? 1 : 0)}`] : [];
    });
    const at = `${moment(column * data.lanes.column, data.lanes.column)} to ${moment((column + 1) * data.lanes.column, data.lanes.column)}`;
    const rest = parts.length ? `${parts.join(", ")}; the rest: its own code` : "its own code all the time";
    showTip(x, y, lanes[n].name, [`${at}: ${rest}`, ...near.slice(0, 4).map((it) => `${it.who}, ${time(it.length)}`)]);
    return true;
  }

  function say(it) {
    const { head, when } = describe(it);
    said.textContent = `${head}, ${when}. ${it.seen.map(requestLine).join("; ")}`;
  }

  function zoom(t0, t1, r0 = view.r0, r1 = view.r1) {
    const least = map.column * 8;
    const middle = (t0 + t1) / 2;
    if (t1 - t0 < least) [t0, t1] = [middle - least / 2, middle + least / 2];
    if (r1 - r0 < 4) [r0, r1] = [(r0 + r1) / 2 - 2, (r0 + r1) / 2 + 2];
    const length = Math.min(t1 - t0, whole.t1 - whole.t0);
    t0 = Math.min(Math.max(t0, whole.t0), whole.t1 - length);
    // A link may have any numbers.
    [r0, r1] = [Math.max(r0, whole.r0), Math.min(r1, whole.r1)];
    if (!(r1 - r0 >= 1)) [r0, r1] = [whole.r0, whole.r1];
    view = { t0, t1: t0 + length, r0, r1 };
    cursor = null;
    tip.hidden = true;
    draw();
    if (control.changed) control.changed();
    const step = length / 100;
    said.textContent = `Shown: ${moment(view.t0, step)} to ${moment(view.t1, step)}, ${time(latency(view.r0))} to ${time(latency(view.r1))}.`;
  }

  function unzoom() {
    zoom(whole.t0, whole.t1, whole.r0, whole.r1);
    said.textContent = "";
  }

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = place(event);
    if (x < left || event.button !== 0) return;
    drag = { x0: x, x1: x, from: y, y0: y, y1: y, moved: false, isBox: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (!drag) return hover(x, y);
    const bottom = top + drawn.size.height;
    drag.x1 = Math.min(Math.max(x, left), left + drawn.size.plot);
    drag.moved = Math.abs(drag.x1 - drag.x0) > 4;
    // Along the axis of time only, unless it is a box.
    drag.isBox = Math.abs(y - drag.from) > 14 && drag.from <= bottom;
    [drag.y0, drag.y1] = drag.isBox ? [drag.from, Math.min(Math.max(y, top), bottom)] : [top, drawn.size.total - axis];
    tip.hidden = true;
    show();
  });
  canvas.addEventListener("pointerup", () => {
    const it = drag;
    drag = null;
    if (it && !it.moved) goTo(cursor);
    if (!it || !it.moved) return;
    const [t0, t1] = [timeAt(Math.min(it.x0, it.x1)), timeAt(Math.max(it.x0, it.x1))];
    if (!it.isBox) return zoom(t0, t1);
    const rowAt = (y) => view.r0 + (top + drawn.size.height - y) / drawn.size.height * (view.r1 - view.r0);
    zoom(t0, t1, rowAt(Math.max(it.y0, it.y1)), rowAt(Math.min(it.y0, it.y1)));
  });
  canvas.addEventListener("pointerleave", () => {
    cursor = null;
    tip.hidden = true;
    show();
  });
  canvas.addEventListener("dblclick", unzoom);
  reset.addEventListener("click", unzoom);

  /** To the waterfall of the slowest request of a cell that has one. */
  function goTo(it) {
    const seen = it && it.seen.find(([, , , , waterfall]) => waterfall !== null);
    if (!seen) return;
    const request = byId(`request-${seen[4] + 1}`);
    if (!request) return;
    request.open = true;
    request.scrollIntoView();
    request.querySelector("summary").focus({ preventScroll: true });
  }

  /** The next cell that has something, in that direction: along a row of the map, or up and down a column. */
  function step(byColumn, byRow) {
    if (!cursor) {
      const keys = [...drawn.counts.keys()];
      const highest = keys.reduce((best, key) => (key % 65536 > best % 65536 ? key : best), keys[0]);
      return highest === undefined ? null : cell(Math.floor(highest / 65536), highest % 65536);
    }
    let best = null;
    for (const key of drawn.counts.keys()) {
      const [dc, dr] = [Math.floor(key / 65536) - cursor.column, key % 65536 - cursor.row];
      const [along, beside] = byColumn ? [dc * byColumn, Math.abs(dr)] : [dr * byRow, Math.abs(dc)];
      if (along > 0 && (!best || along + 4 * beside < best.far)) best = { far: along + 4 * beside, key };
    }
    return best ? cell(Math.floor(best.key / 65536), best.key % 65536) : cursor;
  }

  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const middle = cursor ? (cursor.t0 + cursor.t1) / 2 : (view.t0 + view.t1) / 2;
    const length = view.t1 - view.t0;
    if (steps[event.key]) {
      cursor = step(...steps[event.key]);
      if (cursor) say(cursor);
      show();
    } else if (event.key === "+" || event.key === "=") zoom(middle - length / 4, middle + length / 4);
    else if (event.key === "-") zoom(middle - length, middle + length);
    else if (event.key === "Enter") goTo(cursor);
    else if (event.key === "Escape" || event.key === "0") unzoom();
    else return;
    event.preventDefault();
  });

  /** The same in words: for parts of the time, how many requests ended and what the slowest took. */
  function table(body) {
    const parts = 20;
    const length = (view.t1 - view.t0) / parts;
    for (let n = 0; n < parts; n++) {
      const [from, to] = [view.t0 + n * length, view.t0 + (n + 1) * length];
      const within = cells.filter(([column]) => (column + 0.5) * map.column >= from && (column + 0.5) * map.column < to);
      const count = within.reduce((sum, cell) => sum + cell[2], 0);
      const slowest = within.reduce((most, cell) => Math.max(most, cell[1]), -1);
      const took = slowest < 0 ? "–" : `${time(latency(slowest))} to ${time(latency(slowest + 1))}`;
      const row = [moment(from, length / 10), String(count), took].map((text) => element("td", {}, text));
      body.append(element("tr", {}, ...row));
    }
  }
  byId("heat-table").addEventListener("toggle", (event) => {
    const body = byId("heat-rows");
    body.replaceChildren();
    if (event.target.open) table(body);
  });
  const control = { draw, zoom, isWhole, left, changed: null, state: () => ({ view, whole, drawn, cursor }) };
  return control;
})();
