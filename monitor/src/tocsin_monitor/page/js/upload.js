/** Send a file to the monitor, with progress. */

import { ApiError, BASE, authorization } from "./api.js";

/**
 * Send a file, and return the monitor's answer. `fetch` reports no progress of an upload; this does.
 * @param {string} path
 * @param {Record<string, string>} query
 * @param {File} file
 * @param {(share: number) => void} sent
 * @returns {Promise<any>}
 */
export function upload(path, query, file, sent) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `${BASE}${path}?${new URLSearchParams(query)}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    for (const [name, value] of Object.entries(authorization())) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => event.total && sent(event.loaded / event.total));
    request.addEventListener("error", () => reject(new ApiError(0, "the monitor cannot be reached")));
    request.addEventListener("load", () => {
      /** @type {any} */
      let answer;
      try {
        answer = JSON.parse(request.responseText);
      } catch {
        return reject(new ApiError(request.status, "the monitor's reply cannot be read"));
      }
      if (request.status < 400) resolve(answer);
      else
        reject(new ApiError(request.status, answer?.error?.message ?? `the monitor answered ${request.status}`));
    });
    request.send(file);
  });
}
