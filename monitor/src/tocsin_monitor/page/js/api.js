/** Requests to the monitor's API. */

import { askForToken, token } from "./token.js";

export const BASE = "/api/v1";

/** What the API refused, or that it could not be reached (status 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** @returns {Record<string, string>} */
export function authorization() {
  const known = token();
  return known ? { Authorization: `Bearer ${known}` } : {};
}

/**
 * Fetch with the token; if the API asks for another one, ask the user and try again.
 * @param {string} path
 * @param {RequestInit} [options]
 * @returns {Promise<Response>}
 */
export async function authorizedFetch(path, options = {}) {
  for (;;) {
    const sent = token();
    const response = await fetch(BASE + path, { ...options, headers: { ...options.headers, ...authorization() } });
    if (response.status !== 401) return response;
    await askForToken(sent);
  }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<any>}
 */
export async function request(method, path, body) {
  /** @type {RequestInit} */
  const options = { method };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json" };
  }
  let response;
  try {
    response = await authorizedFetch(path, options);
  } catch {
    throw new ApiError(0, "the monitor cannot be reached");
  }
  const text = await response.text();
  /** @type {any} */
  let answer = null;
  try {
    answer = text ? JSON.parse(text) : null;
  } catch {
    if (response.ok) throw new ApiError(response.status, "the monitor's reply cannot be read");
  }
  if (!response.ok)
    throw new ApiError(response.status, answer?.error?.message ?? `the monitor answered ${response.status}`);
  return answer;
}

/**
 * @param {string} path
 * @param {Record<string, string | number | boolean | null | undefined>} [query]
 */
export function get(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return request("GET", search.size ? `${path}?${search}` : path);
}

/**
 * The address of a signal, whose name may contain any character.
 * @param {string} name
 * @param {string} [part]
 */
export function signalPath(name, part) {
  return `/signals/${encodeURIComponent(name)}${part ? `/-/${part}` : ""}`;
}
