// Draws when the window, the colours or the medium change.

const redraw = () => {
  if (heat) heat.draw();
  if (percentiles) percentiles.draw();
};
redraw();
// A change of size comes often: draw once for each picture of the browser.
let isAsked = false;
addEventListener("resize", () => {
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => {
    isAsked = false;
    redraw();
  });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
// Paper is white.
addEventListener("beforeprint", () => {
  document.documentElement.classList.add("paper");
  redraw();
});
addEventListener("afterprint", () => {
  document.documentElement.classList.remove("paper");
  redraw();
});
// A link to a folded request opens it.
const unfold = () => {
  const it = /^#request-[0-9]{1,4}$/.test(location.hash) && byId(location.hash.slice(1));
  if (it) it.open = true;
  link.read();
};
addEventListener("hashchange", unfold);
unfold();
