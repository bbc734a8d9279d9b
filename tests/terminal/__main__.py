"""Write the files anew."""

from tests.terminal.screens import SCREENS, held, screen

for name, width in SCREENS:
    held(name, width).write_text(screen(name, width))
