/* Whoever has no mouse scrolls wide code and wide tables with the arrow keys: these take the focus while they are too wide. */
"use strict";
(() => {
  const wide = (part) => part.scrollWidth > part.clientWidth;
  const mark = () => {
    for (const part of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap")) {
      if (wide(part)) part.tabIndex = 0;
      else part.removeAttribute("tabindex");
    }
  };
  addEventListener("load", mark);
  addEventListener("resize", mark);
})();
