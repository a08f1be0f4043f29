"""The marks that charts are drawn with, and sizes that they share."""

from markupsafe import Markup

# Lengths are in units of the drawing, which is WIDTH wide and is scaled to the room it has.
WIDTH = 380
CHARACTER = 6.6  # about the width of a character of the 12-unit font
LINE = 18  # height of a line of text
LINE_CHARACTERS = 58  # that fit into the width

PATH = Markup('<path class="{}" d="{}"/>')
TEXT = Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>')
CIRCLE = Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}">{}</circle>')
BOX = Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"{}>{}</rect>')
TIP = Markup("<title>{}</title>")  # browsers show it as a tooltip, without any script
NOTHING = Markup("")
