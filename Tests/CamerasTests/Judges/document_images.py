# Draws a document on a dark desk, and what goes wrong when it is photographed: gray images as PGM files in the folder that
# the argument names.
import random
import sys
from PIL import Image, ImageDraw, ImageFilter, ImageFont

random.seed(19)
SIZE = (1280, 720)


def document(box):
    image = Image.new("L", SIZE, 40)
    draw = ImageDraw.Draw(image)
    draw.rectangle(box, fill=190, outline=120)
    line = Image.new("L", (300, 11), 190)
    pen, font = ImageDraw.Draw(line), ImageFont.load_default()
    left, top, right, bottom = box
    y = top + 20
    while y + 40 < bottom:
        pen.rectangle((0, 0, 300, 11), fill=190)
        pen.text((0, 0), "".join(random.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789<") for _ in range(44)), 30, font)
        image.paste(line.resize((right - left - 40, 24), Image.BICUBIC), (left + 20, y))
        y += 44
    return image


whole = (100, 60, 1179, 659)  # 1080 by 600 of 1280 by 720: 0.703
sharp = document(whole)
images = {"sharp": sharp, "small": document((500, 260, 819, 459)), "desk": Image.new("L", SIZE, 40)}
for radius in (1, 2, 4, 8):
    images[f"blur-{radius}"] = sharp.filter(ImageFilter.GaussianBlur(radius))
# A lamp's reflection over a tenth of the document: 64,800 pixels, an ellipse with half axes of 180 and 115.
glare = sharp.copy()
ImageDraw.Draw(glare).ellipse((460, 245, 819, 474), fill=255)
images["glare"] = glare
images["double"] = sharp.resize((2560, 1440), Image.BICUBIC)
# Noise of a camera in bad light, and a speck in a corner.
noise = Image.effect_noise(SIZE, 16)
images["noise"] = Image.blend(sharp, noise, 0.15)
speck = sharp.copy()
ImageDraw.Draw(speck).rectangle((4, 700, 8, 704), fill=250)
images["speck"] = speck
for name, image in images.items():
    image.save(f"{sys.argv[1]}/{name}.pgm")
