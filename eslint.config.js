import js from "@eslint/js";
import globals from "globals";

export default [
  {
    files: ["monitor/src/tocsin_monitor/page/js/**/*.js"],
    ...js.configs.recommended,
    languageOptions: { globals: globals.browser },
    rules: { ...js.configs.recommended.rules, eqeqeq: "error", "no-var": "error", "prefer-const": "error" },
  },
];
