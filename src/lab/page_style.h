// What the report's page looks like and how its filters work. No colour is written twice: those of figures
// come from svg_style().
#pragma once

namespace weft::lab {

inline constexpr const char* kPageStyle = R"(
:root{color-scheme:light dark;--bg:#fff;--fg:#1f2328;--dim:#59636e;--line:#d1d9e0;--soft:#f6f8fa;--link:#0969da;
--good:#1a7f37;--near:#0969da;--side:#9a6700;--open:#59636e;--bad:#cf222e}
@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--dim:#9198a1;--line:#3d444d;--soft:#151b23;
--link:#58a6ff;--good:#3fb950;--near:#58a6ff;--side:#d29922;--open:#9198a1;--bad:#f85149}}
*{box-sizing:border-box}
body{margin:0;overflow-wrap:anywhere;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}
main,header,nav{max-width:1180px;margin:0 auto;padding:0 16px}
nav{display:flex;gap:4px 16px;padding:10px 16px;flex-wrap:wrap}
.top{position:sticky;top:0;background:var(--bg);border-bottom:1px solid var(--line);z-index:2}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
h1{font-size:1.6rem;margin:20px 0 4px}h2{font-size:1.2rem;margin:36px 0 8px;scroll-margin-top:52px}
h3{font-size:1rem;margin:0}p{margin:4px 0 8px}.dim{color:var(--dim)}small{color:var(--dim)}
code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:var(--soft);padding:10px;overflow-x:auto;border-radius:6px}
.filters{display:flex;flex-wrap:wrap;gap:8px;margin:12px 0;align-items:center}
.filters button,.filters input{font:inherit;font-size:14px;color:var(--fg);background:var(--soft);
border:1px solid var(--line);border-radius:999px;padding:3px 12px}
.filters button{cursor:pointer}.filters button[aria-pressed=false]{opacity:.45;text-decoration:line-through}
.filters input{min-width:180px;flex:1 1 180px;max-width:320px}
.claim{display:grid;grid-template-columns:minmax(0,1.25fr) minmax(0,1.6fr) minmax(0,1fr);gap:6px 20px;padding:14px 0;
border-top:1px solid var(--line)}
.claim[hidden]{display:none}
.claim .paper{margin-top:4px}
.strip{display:grid;grid-template-columns:minmax(0,1fr) 200px;gap:0 10px;align-items:center;margin-bottom:6px;
font-size:13px}
.strip .value{font-variant-numeric:tabular-nums;color:var(--dim)}
.strip svg{grid-row:1/3;grid-column:2;width:200px}
.badge{display:inline-block;font-weight:600;font-size:13px;border:1.5px solid currentColor;border-radius:999px;padding:1px 10px}
.good{color:var(--good)}.near{color:var(--near)}.side{color:var(--side)}.open{color:var(--open)}.bad{color:var(--bad)}
.why{font-size:13px;margin-top:6px;overflow-wrap:anywhere}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(400px,100%),1fr));gap:16px;align-items:start}
.figures svg{border:1px solid var(--line);border-radius:8px;width:100%;max-width:520px;background:var(--bg)}
details{margin:6px 0}summary{cursor:pointer;color:var(--link)}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
td,th{overflow-wrap:normal;border:1px solid var(--line);padding:3px 8px;text-align:left;vertical-align:top}th{background:var(--soft)}
@media(max-width:760px){.claim{grid-template-columns:minmax(0,1fr)}.strip{grid-template-columns:minmax(0,1fr) 150px}
.strip svg{width:150px}h1{font-size:1.3rem}}
@media print{.top,.filters{display:none}}
)";

inline constexpr const char* kPageScript = R"(
const claims=[...document.querySelectorAll('.claim')],buttons=[...document.querySelectorAll('.filters button')];
const words=document.querySelector('#words'),count=document.querySelector('#count');
function show(){const on=new Set(buttons.filter(b=>b.getAttribute('aria-pressed')!=='false').map(b=>b.dataset.verdict));
const text=words.value.toLowerCase();let n=0;
for(const c of claims){const see=on.has(c.dataset.verdict)&&c.textContent.toLowerCase().includes(text);c.hidden=!see;n+=see;}
count.textContent=n+' of '+claims.length+' claims';
const off=buttons.filter(b=>b.getAttribute('aria-pressed')==='false').map(b=>b.dataset.verdict);
history.replaceState(null,'',off.length||text?'#hide='+encodeURIComponent(off.join(','))+'&words='+encodeURIComponent(text):location.pathname.split('/').pop());}
for(const b of buttons)b.addEventListener('click',()=>{b.setAttribute('aria-pressed',b.getAttribute('aria-pressed')==='false');show();});
words.addEventListener('input',show);
const asked=new URLSearchParams(location.hash.slice(1));
if(asked.has('hide')||asked.has('words')){words.value=asked.get('words')||'';const off=(asked.get('hide')||'').split(',');
for(const b of buttons)b.setAttribute('aria-pressed',!off.includes(b.dataset.verdict));show();}
)";

}  // namespace weft::lab
