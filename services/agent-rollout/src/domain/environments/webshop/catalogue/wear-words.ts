/** Words of what people wear: clothes, shoes, bags and jewellery. */

import { COLORS, type Family, kind } from "./words.ts";

const clothes: Family = {
  categories: [
    {
      path: ["Clothing", "Women"],
      kinds: [
        kind("women's sweaters", "Women's Knit Sweater", "sweater", 22, 68),
        kind("women's dresses", "Women's Casual Summer Dress", "summer dress", 25, 80),
        kind("women's leggings", "Women's High Rise Leggings", "leggings", 15, 45),
      ],
    },
    {
      path: ["Clothing", "Men"],
      kinds: [
        kind("men's t-shirts", "Men's Crew Neck T-Shirt", "neck shirt", 10, 32),
        kind("men's shorts", "Men's Athletic Shorts", "shorts", 14, 40),
        kind("men's jackets", "Men's Zip Up Jacket", "jacket", 35, 120),
      ],
    },
    {
      path: ["Clothing", "Sleepwear"],
      kinds: [
        kind("pajama sets", "Two Piece Pajama Set", "pajama set", 20, 55),
        kind("bathrobes", "Long Hooded Bathrobe", "bathrobe", 28, 70),
      ],
    },
  ],
  attributes: {
    "machine wash": "on a warm cycle without losing its shape",
    "quick drying": "after washing or a long run in the rain",
    "moisture wicking": "so that sweat never stays on the skin",
    "wrinkle free": "straight out of the suitcase",
    "organic cotton": "grown without pesticides",
    "slim fit": "that follows the body and leaves room to move",
    "fade resistant": "dye that stays true for years",
    "odor resistant": "yarn for several days of wear",
    "four way stretch": "for every bend and reach",
    "hidden pocket": "inside the seam for keys and cards",
    "uv protection": "of factor fifty for days in the sun",
    "tagless collar": "that does not scratch",
  },
  options: [
    { name: "color", values: COLORS },
    { name: "size", values: ["small", "medium", "large", "xxl"] },
    { name: "length", values: ["petite", "regular", "tall"] },
  ],
  uses: ["yoga and gym", "the office", "travel", "lazy weekends", "evenings out", "cool mornings"],
};

const shoes: Family = {
  categories: [
    {
      path: ["Shoes", "Women's Shoes"],
      kinds: [
        kind("women's running shoes", "Women's Running Shoes", "running shoes", 35, 110),
        kind("women's sandals", "Women's Strappy Sandals", "sandals", 18, 65),
      ],
    },
    {
      path: ["Shoes", "Men's Shoes"],
      kinds: [
        kind("men's boots", "Men's Lace Up Boots", "lace boots", 45, 150),
        kind("men's loafers", "Men's Slip On Loafers", "loafers", 28, 90),
        kind("men's slippers", "Men's House Slippers", "house slippers", 14, 38),
      ],
    },
  ],
  attributes: {
    "non slip": "on wet tiles and polished floors",
    "memory foam": "that takes the form of the foot",
    "arch support": "for long days of standing",
    "rubber sole": "with a deep tread",
    "breathable mesh": "upper that lets air through",
    "water resistant": "to puddles and light rain",
    "wide toe box": "with room for every toe",
    "shock absorbing": "heel for hard pavements",
    "vegan leather": "made without any animal product",
    "reflective trim": "to be seen after dark",
  },
  options: [
    { name: "color", values: COLORS },
    { name: "size", values: ["6", "7", "8", "9", "10", "11", "12"] },
    { name: "width", values: ["narrow", "standard", "extra wide"] },
  ],
  uses: ["long walks", "daily errands", "trails", "the office", "the pool side", "garden work"],
};

const accessories: Family = {
  categories: [
    {
      path: ["Accessories", "Bags"],
      except: ["hypoallergenic", "tarnish free"],
      kinds: [
        kind("backpacks", "Laptop Backpack", "laptop backpack", 25, 95),
        kind("tote bags", "Canvas Tote Bag", "canvas tote bag", 12, 45),
        kind("wallets", "Bifold Wallet", "wallet", 12, 50),
      ],
    },
    {
      path: ["Accessories", "Jewelry"],
      except: ["adjustable strap"],
      kinds: [
        kind("necklaces", "Pendant Necklace", "pendant necklace", 15, 85),
        kind("earrings", "Hoop Earrings", "hoop earrings", 9, 60),
      ],
    },
  ],
  attributes: {
    "gift box": "included, ready to hand over",
    hypoallergenic: "parts for sensitive skin",
    "hand finished": "by one maker from start to end",
    "tarnish free": "after years of daily use",
    "scratch resistant": "surface that keeps its shine",
    "adjustable strap": "with a buckle that holds",
    "secure clasp": "that does not open by itself",
    "recycled material": "in every visible part",
    "feather light": "so that one forgets wearing it",
    "engraved detail": "on the back",
  },
  options: [
    { name: "color", values: COLORS },
    { name: "style", values: ["classic", "modern", "vintage", "sporty"] },
  ],
  uses: ["birthdays", "commuting", "weddings", "school days", "weekend trips"],
};

export const WEAR_FAMILIES: readonly Family[] = [clothes, shoes, accessories];
