"""The look that all pages share; the colours also serve the plots."""

INK = "#1d2733"
MUTED = "#5c6b7a"
GRID = "#dfe5eb"
SERIES = ("#2463a8", "#d0762b", "#3a8a5f", "#a33b5d", "#6b5ba8", "#8a7a2b", "#2b8a8a", "#7a4a33")
"""Colours of series, told apart also when printed in grey or seen with red-green blindness."""

CSS = f"""
:root {{ color-scheme: light; }}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: #f4f6f8; color: {INK};
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }}
main {{ max-width: 60rem; margin: 1.5rem auto; padding: 1.5rem 2rem 2rem; background: #fff;
  border: 1px solid {GRID}; border-radius: 8px; }}
h1 {{ font-size: 1.5rem; margin: 0 0 1rem; }}
h2 {{ font-size: 1.1rem; margin: 2rem 0 .6rem; }}
dl.facts {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr));
  gap: .6rem; margin: 0 0 1rem; }}
dl.facts div {{ background: #f4f6f8; border-radius: 6px; padding: .5rem .8rem; overflow-wrap: anywhere; }}
dl.facts dt {{ color: {MUTED}; font-size: .8rem; }}
dl.facts dd {{ margin: 0; font-weight: 600; font-variant-numeric: tabular-nums; }}
ul.warnings {{ margin: 1rem 0; padding: .7rem 1rem .7rem 2rem; background: #fdf4e3;
  border-left: 4px solid #d0962b; border-radius: 4px; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid {GRID}; }}
th {{ color: {MUTED}; font-weight: 600; font-size: .85rem; }}
td.number, th.number {{ text-align: right; }}
figure {{ margin: 1.2rem 0; }}
figure svg {{ width: 100%; height: auto; display: block; }}
figcaption {{ color: {MUTED}; font-size: .88rem; margin-top: .2rem; }}
nav {{ max-width: 60rem; margin: 1.5rem auto 0; padding: 0 2rem; }}
nav a {{ color: {SERIES[0]}; margin-right: 1.2rem; }}
@media (max-width: 40rem) {{ main {{ padding: 1rem; margin: 0; border: 0; }} }}
"""
