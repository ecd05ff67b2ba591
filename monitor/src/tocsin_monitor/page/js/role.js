/** What the viewer may do: what is not allowed is not offered. */

import { get } from "./api.js";

let role = "read";
/** @type {string[]} the roles whose work the viewer may do */
let may = [];

export function currentRole() {
  return role;
}

/** @param {"read" | "operate" | "write" | "admin"} needed */
export function allowed(needed) {
  return may.includes(needed);
}

export async function loadRole() {
  ({ role, may } = await get("/me"));
}
