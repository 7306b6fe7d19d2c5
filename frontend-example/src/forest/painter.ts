/** Draws the forest on a canvas: five thousand nodes are too many elements, and no trouble for a canvas. */

import type { Forest } from "./changes";
import { COLUMN, isFork, radiusOf, shownFor, type Layout, type Place } from "./layout";

const GROW_MS = 520;
const PULSE_MS = 1_400;
const LABELS_FROM = 0.5;
const NAMES_FROM = 0.1;
const CURVES_UP_TO = 1_500;
const MOST_LABELS = 20_000;

export interface View {
  x: number;
  y: number;
  k: number;
}

interface Sprite {
  place: Place;
  x: number;
  y: number;
  fromX: number;
  fromY: number;
  moved: number;
  born: number;
  pulsed: number;
}

const COLOURS = ["ground", "ink", "quiet", "branch", "sap", "fork", "ref", "bud", "glow"] as const;
type Colours = Record<(typeof COLOURS)[number], string>;

export class Painter {
  view: View = { x: 0, y: 0, k: 1 };
  selected: string | undefined;
  hovered: string | undefined;
  /** What a search has found; all else is dimmed. */
  found: ReadonlySet<string> | undefined;

  private readonly context: CanvasRenderingContext2D;
  private readonly still = matchMedia("(prefers-reduced-motion: reduce)");
  private readonly labels = new Map<string, string>();
  private sprites = new Map<string, Sprite>();
  private forest: Forest = new Map();
  private layout: Layout | undefined;
  private colours: Colours | undefined;
  private readonly font: string;
  private frame = 0;
  private painted = false;

  constructor(private readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d");
    if (context === null) throw new Error("this browser draws no canvas");
    this.context = context;
    this.font = getComputedStyle(canvas).fontFamily;
  }

  show(forest: Forest, layout: Layout) {
    const now = performance.now();
    const first = this.layout === undefined;
    const sprites = new Map<string, Sprite>();
    for (const place of layout.order) {
      const known = this.sprites.get(place.id);
      if (known !== undefined) {
        if (known.place.x !== place.x || known.place.y !== place.y) {
          Object.assign(known, { fromX: known.x, fromY: known.y, moved: now });
        }
        known.place = place;
        sprites.set(place.id, known);
        continue;
      }
      // A new node grows out of its parent.
      const origin = (place.parent && this.sprites.get(place.parent.id)) ?? place;
      const grown = first || this.still.matches;
      const from = grown ? place : origin;
      sprites.set(place.id, {
        ...{ place, x: from.x, y: from.y, fromX: from.x, fromY: from.y },
        ...{ moved: grown ? -Infinity : now, born: grown ? -Infinity : now, pulsed: -Infinity },
      });
    }
    this.sprites = sprites;
    this.forest = forest;
    this.layout = layout;
    this.paint();
  }

  /** An event has arrived: its node, or the one that hides it, lights up for a moment. */
  pulse(id: string) {
    const place = this.layout && shownFor(id, this.forest, this.layout);
    const sprite = place && this.sprites.get(place.id);
    if (sprite === undefined) return;
    const now = performance.now();
    // A burst of events keeps one ring going rather than starting it over.
    if (now - sprite.pulsed > PULSE_MS * 0.6) sprite.pulsed = now;
    this.paint();
  }

  /** The colours have changed. */
  recolour() {
    this.colours = undefined;
    this.paint();
  }

  paint() {
    this.frame ||= requestAnimationFrame((now) => {
      this.frame = 0;
      if (this.draw(now)) this.paint();
    });
  }

  stop() {
    cancelAnimationFrame(this.frame);
    // A stopped painter paints no more.
    this.frame = -1;
  }

  /** The node at a point of the canvas, and whether the point is on the mark of what it hides. */
  at(pointX: number, pointY: number): { place: Place; mark: boolean } | undefined {
    const { k } = this.view;
    const x = (pointX - this.view.x) / k;
    const y = (pointY - this.view.y) / k;
    let nearest: Place | undefined;
    let least = Infinity;
    for (const { place } of this.sprites.values()) {
      const radius = radiusOf(place.node);
      if (Math.abs(y - place.y) > Math.max(radius + 6, 12 / k)) continue;
      const markX = place.x + radius + 16;
      if (place.hidden > 0 && Math.abs(x - markX) < 16 && Math.abs(y - place.y) < 10) return { place, mark: true };
      const beside = place.children.length === 0 && k >= LABELS_FROM && x > place.x && x < place.x + 150;
      const distance = beside ? Math.abs(y - place.y) : Math.hypot(x - place.x, y - place.y);
      if (distance < least && distance < Math.max(radius + 6, 12 / k)) {
        least = distance;
        nearest = place;
      }
    }
    return nearest && { place: nearest, mark: false };
  }

  private palette(): Colours {
    if (this.colours === undefined) {
      const style = getComputedStyle(this.canvas);
      this.colours = Object.fromEntries(
        COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
      ) as Colours;
    }
    return this.colours;
  }

  /** Draws one frame; whether something still moves. */
  private draw(now: number): boolean {
    const { context, view } = this;
    const ratio = this.canvas.width / Math.max(1, this.canvas.clientWidth);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.setTransform(ratio * view.k, 0, 0, ratio * view.k, ratio * view.x, ratio * view.y);
    let moving = false;
    for (const sprite of this.sprites.values()) {
      const { place } = sprite;
      const part = eased((now - sprite.moved) / GROW_MS);
      sprite.x = sprite.fromX + (place.x - sprite.fromX) * part;
      sprite.y = sprite.fromY + (place.y - sprite.fromY) * part;
      moving ||= part < 1 || now - sprite.pulsed < PULSE_MS;
    }
    const visible = this.visible();
    this.drawBranches(visible);
    for (const sprite of visible.nodes) this.drawNode(sprite, now);
    this.drawLabels(visible.nodes);
    this.drawArcs();
    if (!this.painted && visible.nodes.length > 0) performance.mark("forest painted");
    this.painted ||= visible.nodes.length > 0;
    return moving;
  }

  /** What of the forest is within the canvas: nodes, and branches that cross it. */
  private visible() {
    const { x, y, k } = this.view;
    const left = -x / k - COLUMN * 1.3;
    const right = (this.canvas.clientWidth - x) / k + 40;
    const top = -y / k - 60;
    const bottom = (this.canvas.clientHeight - y) / k + 60;
    const nodes: Sprite[] = [];
    const branches: [Sprite, Sprite][] = [];
    for (const sprite of this.sprites.values()) {
      const inside = sprite.y > top && sprite.y < bottom;
      if (inside && sprite.x > left && sprite.x < right) nodes.push(sprite);
      const parent = sprite.place.parent && this.sprites.get(sprite.place.parent.id);
      if (parent === undefined || parent.x > right || sprite.x < left) continue;
      if (Math.max(sprite.y, parent.y) > top && Math.min(sprite.y, parent.y) < bottom) branches.push([parent, sprite]);
    }
    return { nodes, branches };
  }

  /** Branches are as thick as what hangs from them; a fork's is copper. */
  private drawBranches({ branches }: { branches: [Sprite, Sprite][] }) {
    const { context } = this;
    const { k } = this.view;
    const colours = this.palette();
    const curved = branches.length < CURVES_UP_TO;
    const paths = new Map<string, { path: Path2D; fork: boolean; dim: boolean; width: number }>();
    for (const [parent, sprite] of branches) {
      const { node, weight } = sprite.place;
      const width = 1 + Math.round(Math.log2(weight));
      const fork = isFork(node);
      const dim = node.status === "ARCHIVED" || (this.found !== undefined && !this.found.has(node.id));
      const key = `${fork}${dim}${width}`;
      let group = paths.get(key);
      if (group === undefined) paths.set(key, (group = { path: new Path2D(), fork, dim, width }));
      const half = (sprite.x - parent.x) / 2;
      group.path.moveTo(parent.x, parent.y);
      if (curved) {
        group.path.bezierCurveTo(parent.x + half, parent.y, sprite.x - half, sprite.y, sprite.x, sprite.y);
      } else {
        group.path.lineTo(sprite.x, sprite.y);
      }
    }
    for (const { path, fork, dim, width } of paths.values()) {
      context.globalAlpha = dim ? 0.3 : fork ? 0.85 : 1;
      context.strokeStyle = fork ? colours.fork : colours.branch;
      context.lineWidth = Math.max(width, 0.8 / k);
      context.stroke(path);
    }
    context.globalAlpha = 1;
  }

  /** Refs as dashed arcs with a head; where a fork hangs from another node than its source, a dotted one from there. */
  private drawArcs() {
    const { layout, context } = this;
    if (layout === undefined) return;
    const colours = this.palette();
    const k = Math.max(0.25, this.view.k);
    for (const node of this.forest.values()) {
      const foreign = isFork(node) && node.sourceSessionId !== node.parentId ? node.sourceSessionId : undefined;
      if (node.refs.length === 0 && foreign == null) continue;
      const from = shownFor(node.id, this.forest, layout);
      if (from === undefined) continue;
      for (const ref of node.refs) this.drawArc(from, shownFor(ref, this.forest, layout), colours.ref, [7 / k, 5 / k], k);
      if (foreign != null) {
        this.drawArc(from, shownFor(foreign, this.forest, layout), colours.fork, [1.5 / k, 5 / k], k);
      }
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  private drawArc(fromPlace: Place, toPlace: Place | undefined, colour: string, dash: number[], k: number) {
    const from = this.sprites.get(fromPlace.id);
    const to = toPlace && this.sprites.get(toPlace.id);
    if (from === undefined || to === undefined || from === to) return;
    const { context } = this;
    // An arch over what stands between: out of the one from above, and from above into the other.
    const height = 30 + 0.28 * Math.hypot(to.x - from.x, to.y - from.y);
    const aside = Math.abs(to.x - from.x) < COLUMN / 2 ? Math.min(110, 30 + 0.3 * Math.abs(to.y - from.y)) : 0;
    const [outX, outY] = [from.x - aside, from.y - height];
    const [inX, inY] = [to.x - aside, to.y - height];
    const angle = Math.atan2(to.y - inY, to.x - inX);
    const reach = radiusOf(to.place.node) + 3;
    const endX = to.x - Math.cos(angle) * reach;
    const endY = to.y - Math.sin(angle) * reach;
    context.strokeStyle = context.fillStyle = colour;
    const dim = this.found !== undefined && !this.found.has(from.place.id) && !this.found.has(to.place.id);
    context.globalAlpha = dim ? 0.2 : 0.85;
    context.lineWidth = 1.4 / k;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(from.x, from.y - radiusOf(from.place.node));
    context.bezierCurveTo(outX, outY, inX, inY, endX, endY);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.moveTo(endX, endY);
    for (const side of [0.42, -0.42]) {
      context.lineTo(endX - (Math.cos(angle + side) * 8) / k, endY - (Math.sin(angle + side) * 8) / k);
    }
    context.fill();
  }

  private dimness({ node }: Place): number {
    if (this.found !== undefined && !this.found.has(node.id)) return 0.22;
    return node.status === "ARCHIVED" ? 0.42 : 1;
  }

  private drawNode({ place, x, y, born, pulsed }: Sprite, now: number) {
    const { context } = this;
    const { k } = this.view;
    const colours = this.palette();
    const { node } = place;
    const radius = Math.max(radiusOf(node) * eased((now - born) / GROW_MS), 0.8 / k);
    const fork = isFork(node);
    const pulse = (now - pulsed) / PULSE_MS;
    context.globalAlpha = 1;
    if (pulse >= 0 && pulse < 1) {
      context.fillStyle = colours.glow;
      context.globalAlpha = 0.55 * (1 - pulse);
      circle(context, x, y, radius + (this.still.matches ? 8 : 4 + 18 * eased(pulse)) / Math.max(k, 0.4));
      context.fill();
    }
    context.globalAlpha = this.dimness(place);
    if (radius * k < 2.5) {
      context.fillStyle = fork ? colours.fork : colours.sap;
      context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
      return;
    }
    if (place.id === this.selected || place.id === this.hovered) {
      context.strokeStyle = place.id === this.selected ? colours.ink : colours.quiet;
      context.lineWidth = 1.6 / Math.max(k, 0.5);
      circle(context, x, y, radius + 5);
      context.stroke();
    }
    // The ground shines through nothing: branches end at the bud.
    const alpha = context.globalAlpha;
    context.globalAlpha = 1;
    context.fillStyle = colours.ground;
    circle(context, x, y, radius + 1);
    context.fill();
    context.globalAlpha = alpha;
    context.lineWidth = 2;
    context.strokeStyle = fork ? colours.fork : colours.sap;
    context.fillStyle = node.status === "ARCHIVED" ? colours.ground : fork ? colours.ground : colours.bud;
    circle(context, x, y, radius);
    context.fill();
    context.stroke();
    if (fork) {
      // A graft: a ring around a core.
      context.fillStyle = colours.fork;
      circle(context, x, y, Math.max(1.5, radius - 4.5));
      context.fill();
    }
  }

  private drawLabels(sprites: readonly Sprite[]) {
    const { context } = this;
    const { k } = this.view;
    const far = k < LABELS_FROM;
    const colours = this.palette();
    const size = far ? 12 / k : 13;
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.strokeStyle = colours.ground;
    const lowest = new Map<number, number>();
    for (const sprite of sprites) {
      const { place, x, y } = sprite;
      const { node } = place;
      const root = place.parent === undefined;
      if (far) {
        // From afar only roots have names, and only where there is room for them.
        if (!root || k < NAMES_FROM || (y - (lowest.get(x) ?? -Infinity)) * k < 18) continue;
        lowest.set(x, y);
      }
      const inner = place.children.length > 0;
      const radius = radiusOf(node);
      const textX = inner || far ? x - radius : x + radius + (place.hidden > 0 ? 40 : 9);
      const textY = inner || far ? y - radius - 0.95 * size : y - (k > 0.75 ? 7 : 0);
      context.globalAlpha = this.dimness(place);
      context.font = `${root ? 600 : 500} ${size}px ${this.font}`;
      const label = this.fitted(node.label, far ? (place.levels + 1) * COLUMN : inner ? COLUMN - 14 : COLUMN + 30);
      context.lineWidth = far ? 4 / k : 4;
      context.strokeText(label, textX, textY);
      context.fillStyle = colours.ink;
      context.fillText(label, textX, textY);
      if (!inner && !far && k > 0.75) {
        context.font = `11px ${this.font}`;
        context.strokeText(told(place), textX, y + 9);
        context.fillStyle = colours.quiet;
        context.fillText(told(place), textX, y + 9);
      }
      if (place.hidden > 0 && !far) {
        context.fillStyle = colours.branch;
        context.beginPath();
        context.roundRect(x + radius + 4, y - 9, 32, 18, 9);
        context.fill();
        context.fillStyle = colours.ink;
        context.font = `600 11px ${this.font}`;
        context.textAlign = "center";
        context.fillText(`+${place.hidden > 999 ? "999" : place.hidden}`, x + radius + 20, y + 0.5);
        context.textAlign = "start";
      }
    }
    context.globalAlpha = 1;
  }

  private fitted(label: string, width: number): string {
    const key = `${this.context.font}\n${width}\n${label}`;
    let fitted = this.labels.get(key);
    if (fitted === undefined) {
      if (this.labels.size > MOST_LABELS) this.labels.clear();
      fitted = label.slice(0, 60);
      while (fitted.length > 4 && this.context.measureText(fitted).width > width) {
        fitted = `${fitted.slice(0, fitted.endsWith("…") ? -3 : -2).trimEnd()}…`;
      }
      if (fitted.length === 60 && label.length > 60) fitted = `${fitted.slice(0, 59)}…`;
      this.labels.set(key, fitted);
    }
    return fitted;
  }
}



function told({ node }: Place): string {
  const turns = `${node.turnCount} ${node.turnCount === 1 ? "turn" : "turns"}`;
  if (node.status === "ARCHIVED") return `archived · ${turns}`;
  return isFork(node) ? `fork at ${node.forkSeq ?? 0} · ${turns}` : turns;
}

function circle(context: CanvasRenderingContext2D, x: number, y: number, radius: number) {
  context.beginPath();
  context.arc(x, y, Math.max(0, radius), 0, 2 * Math.PI);
}

const eased = (part: number) => (part >= 1 ? 1 : part <= 0 ? 0 : 1 - (1 - part) ** 3);
