/** Words of the home: furniture, bedding, lamps, kitchen and garden. */

import { COLORS, type Family, kind } from "./words.ts";

const furnishing: Family = {
  categories: [
    {
      path: ["Home", "Furniture"],
      except: ["hand woven", "energy saving", "soft touch", "size"],
      kinds: [
        kind("coffee tables", "Living Room Coffee Table", "room coffee table", 60, 240),
        kind("bookcases", "Five Shelf Bookcase", "shelf bookcase", 55, 190),
        kind("bar stools", "Swivel Bar Stool", "bar stool", 40, 150),
      ],
    },
    {
      path: ["Home", "Bedding"],
      except: [
        "easy assembly",
        "space saving",
        "solid wood",
        "mid century",
        "heavy duty",
        "energy saving",
        "child safe",
      ],
      kinds: [
        kind("duvet covers", "Duvet Cover Set", "duvet cover set", 25, 95),
        kind("throw pillows", "Decorative Throw Pillow", "throw pillow", 10, 40),
      ],
    },
    {
      path: ["Home", "Lighting"],
      except: ["solid wood", "stain resistant", "hand woven", "soft touch", "heavy duty", "size"],
      kinds: [
        kind("table lamps", "Bedside Table Lamp", "bedside table lamp", 18, 85),
        kind("pendant lights", "Ceiling Pendant Light", "ceiling pendant light", 30, 160),
      ],
    },
  ],
  attributes: {
    "easy assembly": "in less than half an hour, with the tool in the box",
    "space saving": "form for small flats",
    "solid wood": "from managed forests",
    "stain resistant": "finish against coffee and wine",
    "mid century": "lines in the manner of the fifties",
    "heavy duty": "build that carries more than it has to",
    "eco friendly": "from packing to paint",
    "easy clean": "with a damp cloth",
    "hand woven": "by weavers of one village",
    "energy saving": "by half against older models",
    "child safe": "corners without any sharp edge",
    "soft touch": "on every side that one feels",
  },
  options: [
    { name: "color", values: COLORS },
    { name: "size", values: ["twin", "queen", "king", "crib"] },
    { name: "style", values: ["rustic", "modern", "farmhouse", "coastal"] },
  ],
  uses: ["the living room", "a guest room", "small flats", "reading corners", "the hallway"],
};

const kitchen: Family = {
  categories: [
    {
      path: ["Kitchen", "Cookware"],
      except: ["bpa free", "leak proof", "double wall", "capacity"],
      kinds: [
        kind("frying pans", "Frying Pan With Lid", "frying pan lid", 18, 75),
        kind("baking sheets", "Baking Sheet Pair", "baking sheet pair", 12, 40),
        kind("casseroles", "Cast Iron Casserole", "iron casserole", 35, 140),
      ],
    },
    {
      path: ["Kitchen", "Drinkware"],
      except: ["non stick", "oven safe", "even heating", "scratch proof"],
      kinds: [
        kind("coffee mugs", "Ceramic Coffee Mug", "coffee mug", 8, 28),
        kind("water bottles", "Insulated Water Bottle", "water bottle", 12, 45),
        kind("teapots", "Loose Leaf Teapot", "leaf teapot", 16, 60),
      ],
    },
  ],
  attributes: {
    "dishwasher safe": "on the upper and lower rack",
    "bpa free": "in all parts that touch food or drink",
    "leak proof": "even upside down in a bag",
    "non stick": "coating that needs no oil",
    "stainless steel": "body that does not rust",
    "double wall": "design that stays cool outside",
    "oven safe": "up to two hundred degrees",
    "lead free": "glaze, tested twice",
    "one handed": "use, also with wet fingers",
    "scratch proof": "base for any hob",
    "even heating": "without a hot middle",
  },
  options: [
    { name: "color", values: COLORS },
    { name: "capacity", values: ["half pint", "one quart", "two liters", "gallon"] },
    { name: "finish", values: ["matte", "glossy", "brushed"] },
  ],
  uses: ["busy mornings", "Sunday roasts", "camping", "new homes", "the office kitchen"],
};

const garden: Family = {
  categories: [
    {
      path: ["Garden", "Planters"],
      except: ["foldable", "wind resistant", "tear resistant", "mildew resistant", "size"],
      kinds: [
        kind("plant pots", "Indoor Plant Pot", "plant pot", 10, 45),
        kind("raised garden beds", "Raised Garden Bed", "garden bed", 40, 140),
      ],
    },
    {
      path: ["Garden", "Patio"],
      except: ["drainage holes", "self watering", "frost hardy"],
      kinds: [
        kind("patio umbrellas", "Patio Umbrella", "patio umbrella", 45, 160),
        kind("outdoor rugs", "Outdoor Woven Rug", "rug", 25, 110),
      ],
    },
  ],
  attributes: {
    weatherproof: "from the first frost to the last heat",
    "rust proof": "frame and screws",
    "drainage holes": "with a saucer below",
    foldable: "for the winter in a shed",
    "wind resistant": "up to a fresh breeze",
    "mildew resistant": "weave for shady places",
    "no tools": "needed at any step",
    "self watering": "for a week away",
    "frost hardy": "clay of double thickness",
    "tear resistant": "edges, sewn twice",
  },
  options: [
    { name: "color", values: COLORS },
    { name: "size", values: ["4 feet", "6 feet", "9 feet", "11 feet"] },
  ],
  uses: ["balconies", "herb growing", "summer parties", "small terraces", "the front door"],
};

export const HOME_FAMILIES: readonly Family[] = [furnishing, kitchen, garden];
