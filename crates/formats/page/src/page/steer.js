// Zoom and move of the heat map by wheel, pinch, drag and keys, and the view in the page's address.

if (heat) (() => {
  const canvas = byId("heat");
  /** Pixels of a wheel's turn: some browsers count lines. */
  const pixels = (delta, mode) => delta * (mode === 1 ? 16 : mode === 2 ? 400 : 1);

  /** Zooms the time by a factor, so that the moment at a place of the plot (0 to 1) stays there. */
  function zoomAt(share, factor) {
    const { view } = heat.state();
    const length = view.t1 - view.t0;
    const at = view.t0 + share * length;
    heat.zoom(at - share * length * factor, at + (1 - share) * length * factor);
  }

  /** Moves by a part of what is shown. */
  function move(part) {
    const { view } = heat.state();
    const by = part * (view.t1 - view.t0);
    heat.zoom(view.t0 + by, view.t1 + by);
  }

  // A wheel alone scrolls the page, as everywhere. A pinch on a trackpad comes as a wheel with Ctrl.
  canvas.addEventListener("wheel", (event) => {
    const [x, y] = [pixels(event.deltaX, event.deltaMode), pixels(event.deltaY, event.deltaMode)];
    const { plot } = heat.state().drawn.size;
    if (event.ctrlKey || event.metaKey) {
      const share = (event.clientX - canvas.getBoundingClientRect().left - heat.left) / plot;
      zoomAt(Math.min(Math.max(share, 0), 1), Math.exp(Math.min(Math.max(y, -60), 60) / 100));
    } else if (event.shiftKey || Math.abs(x) > Math.abs(y)) move((Math.abs(x) > Math.abs(y) ? x : y) / plot);
    else return;
    event.preventDefault();
  }, { passive: false });

  // Before the map's own listeners, which take a drag for a choice.
  let grip = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (!(event.shiftKey && event.button === 0) && event.button !== 1) return;
    grip = event.clientX;
    canvas.setPointerCapture(event.pointerId);
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  canvas.addEventListener("pointermove", (event) => {
    if (grip === null) return;
    const by = grip - event.clientX;
    grip = event.clientX;
    move(by / heat.state().drawn.size.plot);
    event.stopImmediatePropagation();
  }, true);
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { grip = null; }, true);

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = { w: () => zoomAt(0.5, 0.5), s: () => zoomAt(0.5, 2), a: () => move(-0.25), d: () => move(0.25) };
    const wanted = keys[event.key.toLowerCase()];
    if (!wanted) return;
    wanted();
    event.preventDefault();
  });
})();

// The address: #view=FROM,TO,LOW,HIGH&request=N. Whoever made it may be a stranger, so only numbers are taken, and the map
// limits them.
const link = (() => {
  let request = null;
  let isAsked = false;

  function write() {
    isAsked = false;
    const parts = [];
    if (heat && !heat.isWhole()) {
      const { t0, t1, r0, r1 } = heat.state().view;
      parts.push(`view=${[t0, t1].map(Math.round).join(",")},${[r0, r1].map((row) => +row.toFixed(2)).join(",")}`);
    }
    if (request !== null) parts.push(`request=${request}`);
    history.replaceState(null, "", parts.length ? `#${parts.join("&")}` : location.pathname + location.search);
  }

  /** Browsers limit how often an address may change. */
  function later() {
    if (isAsked) return;
    isAsked = true;
    setTimeout(write, 250);
  }

  function read() {
    const parts = new URLSearchParams(location.hash.slice(1));
    const numbers = (parts.get("view") || "").split(",").map(Number);
    const isView = numbers.length === 4 && numbers.every(Number.isFinite) && numbers[0] < numbers[1] && numbers[2] < numbers[3];
    if (heat && isView) {
      heat.zoom(...numbers);
      byId("heat").scrollIntoView({ block: "center" });
    }
    const wanted = parts.get("request") || "";
    const it = /^[0-9]{1,4}$/.test(wanted) && byId(`request-${Number(wanted)}`);
    if (!it) return;
    request = Number(wanted);
    it.open = true;
    it.scrollIntoView();
  }

  if (heat) heat.changed = later;
  for (const it of document.querySelectorAll("details.request")) {
    it.querySelector("summary").addEventListener("click", () => {
      request = it.open ? null : Number(it.id.slice("request-".length));
      later();
    });
  }
  return { read };
})();
