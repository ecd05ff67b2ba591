/** What the viewer may do: what is not allowed is not offered. */

import { get } from "./api.js";

const ROLES = ["read", "write", "admin"];
let role = "read";

export function currentRole() {
  return role;
}

/** @param {"read" | "write" | "admin"} needed */
export function allowed(needed) {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed);
}

export async function loadRole() {
  role = (await get("/me")).role;
}
