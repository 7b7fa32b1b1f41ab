"""The beginning of an experiment that is small enough for a test: as many seeds at every size, and its metric."""


def beginning(title, seeds, group="g"):
    sizes = "".join(f"[size.{size}]\nseeds = {seeds}\n" for size in ("quick", "decide", "full"))
    return (f"title = {title!r}\ngroup = '{group}'\nbase = 'pair.toml'\n{sizes}"
            "[[metric]]\nname = 'goodput'\ntext = 'goodput'\nvalue = 'flows.0.goodput_gbps'\nunit = 'Gb/s'\n")
