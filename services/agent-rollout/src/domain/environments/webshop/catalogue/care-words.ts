/** Words of care and food: skin, hair, snacks, drinks, pets and babies. */

import { type Family, kind } from "./words.ts";

const beauty: Family = {
  categories: [
    {
      path: ["Beauty", "Skin Care"],
      kinds: [
        kind("face moisturizers", "Daily Face Moisturizer", "face moisturizer", 9, 48),
        kind("body lotions", "Nourishing Body Lotion", "body lotion", 7, 30),
        kind("lip balms", "Tinted Lip Balm", "lip balm", 4, 18),
      ],
    },
    {
      path: ["Beauty", "Hair Care"],
      kinds: [
        kind("shampoos", "Volume Shampoo", "volume shampoo", 8, 34),
        kind("hair masks", "Repair Hair Mask", "repair hair mask", 10, 40),
      ],
    },
    {
      path: ["Beauty", "Fragrance"],
      except: [
        "tea tree",
        "hyaluronic acid",
        "dermatologist tested",
        "fast absorbing",
        "coconut oil",
        "sulfate free",
      ],
      kinds: [
        kind("perfumes", "Eau de Parfum Spray", "parfum spray", 20, 95),
        kind("scented candles", "Scented Soy Candle", "soy candle", 10, 42),
      ],
    },
  ],
  attributes: {
    "cruelty free": "from the first test to the last",
    "paraben free": "recipe with short list of parts",
    "long lasting": "from breakfast to midnight",
    "sulfate free": "and mild to the eyes",
    "tea tree": "oil against impurities",
    "hyaluronic acid": "for deep moisture",
    "natural ingredients": "pressed cold within a day of harvest",
    "dermatologist tested": "on all types of skin",
    "alcohol free": "so that nothing burns",
    "travel size": "pump for the cabin bag",
    "coconut oil": "of the first pressing",
    "fast absorbing": "without a film",
  },
  options: [
    { name: "scent", values: ["rose", "vanilla", "citrus", "sandalwood", "jasmine", "eucalyptus"] },
    { name: "size", values: ["mini", "standard", "large", "refill"] },
  ],
  uses: ["dry skin", "daily care", "sensitive skin", "quiet evenings", "gifts"],
};

const food: Family = {
  categories: [
    {
      path: ["Grocery", "Snacks"],
      kinds: [
        kind("granola bars", "Crunchy Granola Bars", "granola bars", 6, 28),
        kind("trail mixes", "Fruit and Nut Trail Mix", "fruit nut trail mix", 7, 32),
        kind("crackers", "Seeded Crackers", "crackers", 5, 22),
      ],
    },
    {
      path: ["Grocery", "Beverages"],
      except: ["gluten free", "high protein"],
      kinds: [
        kind("green teas", "Green Tea Bags", "tea bags", 6, 25),
        kind("ground coffees", "Ground Coffee", "coffee", 9, 38),
        kind("drink mixes", "Electrolyte Drink Mix", "electrolyte drink mix", 8, 36),
      ],
    },
  ],
  attributes: {
    "gluten free": "and made in a kitchen without wheat",
    "non gmo": "by certificate",
    "low sugar": "with less than three grams a serving",
    "high protein": "from peas and pumpkin seeds",
    "dairy free": "in every variety",
    kosher: "under supervision",
    "usda organic": "from field to packet",
    "plant based": "from root to leaf",
    "resealable bag": "that keeps its content fresh",
    "individually wrapped": "for the lunch box",
    "nothing artificial": "in colour or taste",
    "fair trade": "with farmers by name",
  },
  options: [
    { name: "flavor", values: ["cinnamon", "chocolate", "blueberry", "peppermint", "honey", "ginger"] },
    { name: "pack", values: ["single", "twin", "family", "bulk"] },
  ],
  uses: ["lunch boxes", "hikes", "the break at work", "movie nights", "breakfast"],
};

const littleOnes: Family = {
  categories: [
    {
      path: ["Pets", "Dogs"],
      kinds: [
        kind("dog beds", "Orthopedic Dog Bed", "dog bed", 22, 90),
        kind("dog harnesses", "Padded Dog Harness", "dog harness", 12, 42),
      ],
    },
    {
      path: ["Pets", "Cats"],
      except: ["washable cover"],
      kinds: [
        kind("cat trees", "Cat Tree Tower", "cat tree tower", 35, 140),
        kind("cat toys", "Feather Cat Toy", "feather cat toy", 6, 24),
      ],
    },
    {
      path: ["Baby", "Nursery"],
      except: ["chew resistant", "sturdy base", "size"],
      kinds: [
        kind("baby blankets", "Muslin Baby Blanket", "muslin baby blanket", 12, 45),
        kind("play mats", "Padded Play Mat", "play mat", 18, 60),
      ],
    },
  ],
  attributes: {
    "washable cover": "with a zip on three sides",
    "chew resistant": "seams and corners",
    "anti slip": "bottom for smooth floors",
    "non toxic": "dyes and fillings",
    "extra soft": "from the first day on",
    "hand made": "by a team of nine",
    "sturdy base": "that does not tip over",
    "easy storage": "flat below a bed",
    "reinforced stitching": "where the strain is greatest",
    "calming effect": "in noisy nights",
  },
  options: [
    { name: "color", values: ["sky", "sand", "mint", "rose", "stone", "sunflower"] },
    { name: "size", values: ["small", "medium", "large", "jumbo"] },
  ],
  uses: ["first months", "long car rides", "rainy days", "restless sleepers", "play at home"],
};

export const CARE_FAMILIES: readonly Family[] = [beauty, food, littleOnes];
