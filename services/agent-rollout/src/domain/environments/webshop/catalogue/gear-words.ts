/** Words of gear: electronics, sport, office and tools. */

import { COLORS, type Family, kind } from "./words.ts";

const electronics: Family = {
  categories: [
    {
      path: ["Electronics", "Audio"],
      except: ["plug and play", "high definition", "universal fit"],
      kinds: [
        kind("headphones", "Over Ear Headphones", "ear headphones", 25, 190),
        kind("bluetooth speakers", "Portable Speaker", "speaker", 20, 130),
        kind("earbuds", "In Ear Earbuds", "earbuds", 18, 120),
      ],
    },
    {
      path: ["Electronics", "Phone Accessories"],
      except: [
        "noise cancelling",
        "hands free",
        "plug and play",
        "high definition",
        "long battery life",
        "low latency",
        "style",
      ],
      kinds: [
        kind("power banks", "Slim Power Bank", "power bank", 16, 65),
        kind("phone chargers", "Desk Phone Charger", "desk phone charger", 12, 48),
      ],
    },
    {
      path: ["Electronics", "Computers"],
      except: ["noise cancelling", "fast charging", "hands free", "long battery life"],
      kinds: [
        kind("keyboards", "Compact Keyboard", "keyboard", 20, 125),
        kind("webcams", "Conference Webcam", "conference webcam", 24, 110),
        kind("computer mice", "Silent Computer Mouse", "computer mouse", 12, 60),
      ],
    },
  ],
  attributes: {
    "noise cancelling": "for trains and open offices",
    "fast charging": "to one half in twenty minutes",
    "hands free": "calls with two microphones",
    "plug and play": "on every system",
    "aluminum alloy": "shell that stays cool",
    "high definition": "down to the smallest detail",
    "long battery life": "of up to forty hours",
    "dust proof": "ports with flaps",
    "low latency": "for games and films",
    "shock proof": "from the height of a table",
    "tangle free": "cord of braided yarn",
    "universal fit": "for all common models",
  },
  options: [
    { name: "color", values: COLORS },
    { name: "style", values: ["wired", "wireless", "hybrid"] },
    { name: "bundle", values: ["basic kit", "travel pouch", "two units"] },
  ],
  uses: ["home offices", "the daily train", "gaming", "video calls", "long flights"],
};

const sport: Family = {
  categories: [
    {
      path: ["Sports", "Fitness"],
      except: ["waterproof", "four season"],
      kinds: [
        kind("yoga mats", "Yoga Mat", "yoga mat", 16, 70),
        kind("resistance bands", "Resistance Bands Set", "resistance bands set", 10, 40),
        kind("dumbbells", "Hex Dumbbell Pair", "hex dumbbell pair", 22, 120),
      ],
    },
    {
      path: ["Sports", "Camping"],
      except: ["latex free", "sweat proof", "high density", "extra thick", "weight"],
      kinds: [
        kind("tents", "Dome Tent", "dome tent", 60, 240),
        kind("sleeping bags", "Sleeping Bag", "sleeping bag", 30, 130),
      ],
    },
  ],
  attributes: {
    "carrying case": "with a shoulder belt",
    "latex free": "and almost without smell",
    "sweat proof": "surface with a fine grain",
    "compact fold": "to the size of a loaf",
    waterproof: "seams, taped by hand",
    "high density": "core that does not sag",
    "anti tear": "threads every five millimetres",
    "extra thick": "for sore knees",
    "lifetime warranty": "without any receipt",
    "four season": "rating from snow to heat",
  },
  options: [
    { name: "color", values: COLORS },
    { name: "weight", values: ["light", "middle", "heavy"] },
  ],
  uses: ["training at home", "festivals", "weekend hikes", "rehabilitation", "studio classes"],
};

const office: Family = {
  categories: [
    {
      path: ["Office", "Furniture"],
      except: [
        "acid free",
        "smooth writing",
        "lay flat",
        "smudge proof",
        "refillable design",
        "recycled paper",
        "bleed proof",
        "pack",
      ],
      kinds: [
        kind("office chairs", "Ergonomic Office Chair", "office chair", 80, 290),
        kind("standing desks", "Electric Standing Desk", "desk", 150, 420),
      ],
    },
    {
      path: ["Office", "Supplies"],
      except: ["lumbar support", "height adjustable", "silent wheels", "anti fatigue"],
      kinds: [
        kind("notebooks", "Hardcover Notebook", "hardcover notebook", 7, 26),
        kind("planners", "Weekly Planner", "planner", 9, 32),
      ],
    },
    {
      path: ["Office", "Craft"],
      except: [
        "lumbar support",
        "height adjustable",
        "silent wheels",
        "anti fatigue",
        "smooth writing",
        "refillable design",
      ],
      kinds: [
        kind("watercolor pads", "Watercolor Pad", "watercolor pad", 9, 36),
        kind("sketch pads", "Spiral Sketch Pad", "spiral sketch pad", 6, 28),
      ],
    },
  ],
  attributes: {
    "lumbar support": "at three heights",
    "acid free": "so that nothing yellows",
    "smooth writing": "from the first stroke",
    "lay flat": "binding without a hump",
    "height adjustable": "without any effort",
    "smudge proof": "within a second",
    "silent wheels": "for wood and carpet",
    "refillable design": "that saves waste",
    "recycled paper": "from one mill",
    "bleed proof": "sheets for markers and ink",
    "anti fatigue": "shape for long sessions",
  },
  options: [
    { name: "color", values: COLORS },
    { name: "style", values: ["executive", "student", "studio"] },
    { name: "pack", values: ["single", "trio", "half dozen", "bulk"] },
  ],
  uses: ["long workdays", "students", "letters and lists", "a first studio", "home offices"],
};

export const GEAR_FAMILIES: readonly Family[] = [electronics, sport, office];
