"""How a page looks: by day and by night, on a desk, on a phone, and on paper."""

__all__ = ["STYLE"]

_LIGHT = """
--paper:#fff;--card:#f6f7f9;--ink:#1a1f26;--muted:#56606c;--line:#dde1e6;--accent:#0072b2;
--c1:#0072b2;--c2:#d55e00;--c3:#009e73;--c4:#aa4f84;--c5:#000;
--h1:#d6e6f4;--h2:#b3d1ea;--h3:#87b7dc;--h4:#5698cb;--h5:#2f78b3;--h6:#155592;--h7:#08306b;
--t1:#1a1f26;--t2:#1a1f26;--t3:#1a1f26;--t4:#000;--t5:#fff;--t6:#fff;--t7:#fff;
--good:#00664a;--bad:#a33c00;
"""
_DARK = """
--paper:#14181d;--card:#1d232a;--ink:#e8ebee;--muted:#a3adb8;--line:#343d47;--accent:#56b4e9;
--c1:#56b4e9;--c2:#e69f00;--c3:#2cc49a;--c4:#de9cc0;--c5:#f0e442;
--h1:#223a52;--h2:#264c6e;--h3:#2a608d;--h4:#2f78ae;--h5:#5b9bcb;--h6:#97c1e2;--h7:#dcecf8;
--t1:#e8ebee;--t2:#e8ebee;--t3:#fff;--t4:#fff;--t5:#000;--t6:#000;--t7:#000;
--good:#4fd0a8;--bad:#f0a35e;
"""

#: The style of the page, which names no file and no server.
STYLE = f"""
:root{{color-scheme:light dark;{_LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}
@media print{{:root{{color-scheme:light;{_LIGHT}}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--paper);color:var(--ink);line-height:1.5;font-size:16px;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}}
main{{max-width:1040px;margin:0 auto;padding:2rem 1.25rem 3rem}}
h1{{font-size:1.6rem;line-height:1.25;margin:.1rem 0 .4rem;overflow-wrap:anywhere}}
h2{{font-size:1.2rem;margin:0 0 .3rem}}
h3{{font-size:1rem;margin:1.4rem 0 .3rem}}
p{{margin:.4rem 0;max-width:46rem;overflow-wrap:anywhere}}
.over{{color:var(--muted);font-size:.85rem;letter-spacing:.02em;margin:0}}
.lead{{font-size:1.1rem}}
.note,figcaption,footer{{color:var(--muted);font-size:.875rem}}
section{{border-top:1px solid var(--line);padding:1.5rem 0 .75rem;margin-top:1.25rem}}
.tiles{{display:grid;grid-template-columns:repeat(auto-fit,minmax(145px,1fr));gap:.75rem;
margin:1.25rem 0 .5rem;padding:0}}
.tiles>div{{background:var(--card);border-radius:8px;padding:.7rem .9rem;min-width:0}}
.tiles dt{{color:var(--muted);font-size:.8rem}}
.tiles dd{{margin:0;font-size:1.35rem;font-weight:600;font-variant-numeric:tabular-nums;
overflow-wrap:anywhere;line-height:1.3}}
.tiles dd small{{display:block;font-size:.8rem;font-weight:400;color:var(--muted)}}
.charts{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,390px),1fr));
gap:1rem 2rem;align-items:start}}
figure{{margin:.75rem 0 .25rem;min-width:0}}
figcaption{{margin-top:.35rem;max-width:32rem}}
figcaption b{{color:var(--ink)}}
svg{{display:block;width:100%;height:auto}}
svg *{{stroke-linejoin:round;stroke-linecap:butt;font-family:inherit}}
.scroll{{overflow-x:auto;max-width:100%}}
table{{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums;margin:.5rem 0}}
th,td{{text-align:right;padding:.28rem .7rem;border-bottom:1px solid var(--line);
vertical-align:top}}
th:first-child,td:first-child{{text-align:left;padding-left:0;overflow-wrap:anywhere;min-width:7rem}}
thead th{{color:var(--muted);font-weight:600}}
tbody th{{font-weight:400}}
.charts td,.charts th{{padding-left:.4rem;padding-right:.4rem}}
.charts td:first-child,.charts th:first-child{{padding-left:0;min-width:5rem}}
.texts td{{text-align:left}}.texts th{{text-align:left}}
.grid td{{text-align:center;padding:.3rem .25rem;border:1px solid var(--paper);min-width:2.2rem}}
.grid th:first-child{{min-width:0;white-space:nowrap;padding-right:.5rem}}
.grid th{{border:0;font-weight:400;max-width:9rem;overflow-wrap:anywhere;color:var(--ink)}}
.grid thead th{{text-align:center}}
.bar{{display:inline-block;width:6rem;height:.6rem;background:var(--line);border-radius:3px;
overflow:hidden;vertical-align:middle}}
.bar i{{display:block;height:100%;background:var(--accent)}}
.key{{display:inline-flex;align-items:center;gap:.3rem;margin-right:.7rem;white-space:nowrap}}
.key i{{width:.8rem;height:.8rem;border-radius:2px;border:1px solid var(--line)}}
.good{{color:var(--good)}}.bad{{color:var(--bad)}}
code,pre{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.85rem}}
code{{overflow-wrap:anywhere}}
pre{{background:var(--card);border-radius:8px;padding:.9rem 1rem;white-space:pre-wrap;
overflow-wrap:anywhere;margin:.6rem 0}}
details{{margin:.5rem 0}}
summary{{cursor:pointer;color:var(--accent);font-size:.875rem}}
h1,h2,h3{{break-after:avoid}}
figure,.tiles>div,tr,pre{{break-inside:avoid}}
@media (max-width:480px){{main{{padding:1.25rem 1rem 2rem}}h1{{font-size:1.3rem}}
.bar{{display:none}}.tiles{{grid-template-columns:1fr 1fr}}.tiles dd{{font-size:1.15rem}}}}
@media print{{body{{font-size:11pt}}main{{max-width:none;padding:0}}
*{{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
.charts{{grid-template-columns:1fr 1fr}}section{{margin-top:.6rem}}summary{{color:var(--ink)}}}}
"""
