/* Wide code and tables take the focus while they are too wide, so that people without a mouse scroll them with arrow keys. */
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
