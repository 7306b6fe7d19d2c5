/** Numbers and times as people read them. */

export function duration(ms: number | null | undefined): string {
  if (ms == null) return "–";
  // Each bound is where rounding would reach the next unit: never "60 s".
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_500) return `${(ms / 1_000).toFixed(ms < 9_950 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1_000);
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export const count = (value: number) => value.toLocaleString("en");

export const plural = (value: number, one: string, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

const SPANS = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
] as const;
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

/** "5 min. ago", and the date for what is over a month ago. */
export function ago(instant: string | null | undefined, now = Date.now()): string {
  if (instant == null) return "never";
  const since = now - Date.parse(instant);
  if (Math.abs(since) > 30 * 86_400_000) return day(instant);
  for (const [span, unit] of SPANS) {
    if (Math.abs(since) >= span) return relative.format(-Math.round(since / span), unit);
  }
  return "just now";
}

export const day = (instant: string) =>
  new Date(instant).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });

export const clock = (instant: string) =>
  new Date(instant).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export const moment = (instant: string) =>
  new Date(instant).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

type Output = { outputPreview?: string | null | undefined; outputLength?: number | null | undefined; isTruncated: boolean };

/** Whether a preview is not all of an output: the log holds more, or its writer cut it. */
export const isCut = (of: Output) => of.isTruncated || (of.outputLength ?? 0) > codePoints(of.outputPreview ?? "");

/** The length of a text as the API counts it. */
export const codePoints = (text: string) => text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);

/** JSON on several lines; text as it is. */
export const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
