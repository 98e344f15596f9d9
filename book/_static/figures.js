// The loader of the interactive figures: a live figure takes the place of its static picture.
//
// The build puts each figure's module inline into the page (book/_ext/figure.py), because a browser
// refuses `<script type="module" src>` on a page opened from disk. The module hands over its
// `mount` in a "figure" event. Until a figure has mounted, and if it fails, the picture stays.
(() => {
  const PICTURE = ".tag_static-figure";

  function pictureOf(root) {
    let node = root.previousElementSibling;
    while (node && !node.matches(PICTURE)) node = node.previousElementSibling;
    return node;
  }

  function start(root, mount) {
    const fallback = pictureOf(root);
    try {
      mount(root, { fallback });
    } catch (error) {
      root.replaceChildren();
      console.error(`The figure "${root.dataset.figure}" did not start.`, error);
      return;
    }
    root.dataset.ready = "true";
    if (fallback) fallback.hidden = true;
  }

  document.addEventListener("figure", ({ detail: { name, mount } }) => {
    for (const root of document.querySelectorAll("[data-figure]")) {
      if (root.dataset.figure === name && !root.dataset.ready) start(root, mount);
    }
  });
})();
