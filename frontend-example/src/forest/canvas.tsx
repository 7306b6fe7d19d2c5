/** The picture of the forest, to be walked through by pointer, touch and keys. */

import { select } from "d3-selection";
import "d3-transition";
import { zoom, zoomIdentity, type ZoomBehavior } from "d3-zoom";
import { useEffect, useEffectEvent, useRef, useState, type KeyboardEvent } from "react";
import { useFollow } from "../follow";
import { plural } from "../format";
import { PulsesDocument } from "../gql/graphql";
import type { Forest } from "./changes";
import { COLUMN, isFork, shownFor, type Layout, type Place } from "./layout";
import { Painter } from "./painter";

interface Props {
  forest: Forest;
  layout: Layout;
  selected: string | undefined;
  found: ReadonlySet<string> | undefined;
  onSelect: (id: string | undefined) => void;
  onOpen: (id: string) => void;
  onToggle: (id: string, collapse: boolean) => void;
}

interface Stage {
  painter: Painter;
  zooming: ZoomBehavior<HTMLCanvasElement, unknown>;
}

const calm = () => (matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 350);

export function ForestCanvas({ forest, layout, selected, found, onSelect, onOpen, onToggle }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [stage, setStage] = useState<Stage>();
  const select_ = useEffectEvent(onSelect);
  const open = useEffectEvent(onOpen);
  const toggle = useEffectEvent(onToggle);
  const fitFirst = useEffectEvent((made: Stage) => fit(made, canvas.current, layout, true));

  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const painter = new Painter(element);
    const zooming = zoom<HTMLCanvasElement, unknown>()
      .scaleExtent([0.01, 2.5])
      .on("zoom", ({ transform }: { transform: { x: number; y: number; k: number } }) => {
        painter.view = { x: transform.x, y: transform.y, k: transform.k };
        painter.paint();
      });
    const selection = select(element).call(zooming).on("dblclick.zoom", null);
    const at = (event: MouseEvent) => painter.at(event.offsetX, event.offsetY);
    selection.on("click.pick", (event: MouseEvent) => {
      const hit = at(event);
      if (hit?.mark) toggle(hit.place.id, false);
      else select_(hit?.place.id);
    });
    selection.on("dblclick.pick", (event: MouseEvent) => {
      const hit = at(event);
      if (hit !== undefined) open(hit.place.id);
    });
    selection.on("pointermove.pick", (event: PointerEvent) => {
      const id = at(event)?.place.id;
      element.style.cursor = id === undefined ? "" : "pointer";
      if (painter.hovered === id) return;
      painter.hovered = id;
      painter.paint();
    });
    const made = { painter, zooming };
    let fitted = false;
    const sized = new ResizeObserver(() => {
      const ratio = Math.min(2, devicePixelRatio);
      element.width = element.clientWidth * ratio;
      element.height = element.clientHeight * ratio;
      if (!fitted) fitFirst(made);
      fitted = true;
      painter.paint();
    });
    sized.observe(element);
    const recolour = () => painter.recolour();
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", recolour);
    const themed = new MutationObserver(recolour);
    themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    setStage(made);
    return () => {
      painter.stop();
      sized.disconnect();
      themed.disconnect();
      dark.removeEventListener("change", recolour);
      selection.on(".zoom", null).on(".pick", null);
    };
  }, []);

  useEffect(() => stage?.painter.show(forest, layout), [stage, forest, layout]);
  useEffect(() => {
    if (stage === undefined) return;
    Object.assign(stage.painter, { selected, found });
    stage.painter.paint();
  }, [stage, selected, found]);
  useFollow(
    PulsesDocument,
    "pulses",
    () => ({}),
    (arrived) => {
      const working = new Set(arrived.map((data) => data.spaceEvents.sessionId));
      working.forEach((id) => stage?.painter.pulse(id));
    },
  );

  const moveTo = useEffectEvent((id: string) => {
    const place = shownFor(id, forest, layout);
    if (place !== undefined) bringIntoView(stage, canvas.current, place);
  });
  useEffect(() => {
    if (selected !== undefined) moveTo(selected);
  }, [selected]);

  const here = (selected === undefined ? undefined : shownFor(selected, forest, layout)) ?? layout.order[0];
  const zoomBy = (factor: number) => {
    if (stage && canvas.current) stage.zooming.scaleBy(select(canvas.current).transition().duration(calm() / 2), factor);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = stepOf(event.key, here, layout);
    if (event.key === "+" || event.key === "=") zoomBy(1.4);
    else if (event.key === "-") zoomBy(1 / 1.4);
    else if (event.key === "0") fit(stage, canvas.current, layout);
    else if (here === undefined) return;
    else if (event.key === "Enter") onOpen(here.id);
    else if (event.key === "ArrowRight" && here.hidden > 0) onToggle(here.id, false);
    else if (event.key === "ArrowLeft" && here.children.length > 0) onToggle(here.id, true);
    else if (step !== undefined) onSelect(step.id);
    else return;
    event.preventDefault();
  };

  return (
    <div className="stage">
      <div
        className="tree"
        role="tree"
        tabIndex={0}
        aria-label="Forest of sessions"
        aria-activedescendant={here && "active-node"}
        onKeyDown={onKeyDown}
        onFocus={() => {
          if (selected === undefined && here !== undefined && document.activeElement?.matches(":focus-visible")) {
            onSelect(here.id);
          }
        }}
      >
        <canvas ref={canvas} aria-hidden="true" />
        {here === undefined ? null : (
          <div
            id="active-node"
            className="unseen"
            role="treeitem"
            aria-level={here.depth + 1}
            aria-posinset={here.position}
            aria-setsize={here.siblings}
            aria-selected={here.id === selected}
            aria-expanded={here.hidden > 0 ? false : here.children.length > 0 ? true : undefined}
          >
            {spoken(here)}
          </div>
        )}
      </div>
      <div className="zoom" role="group" aria-label="Zoom">
        <button type="button" aria-label="Zoom in" onClick={() => zoomBy(1.4)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => zoomBy(1 / 1.4)}>
          −
        </button>
        <button type="button" aria-label="Show the whole forest" onClick={() => fit(stage, canvas.current, layout)}>
          <svg viewBox="0 0 16 16" aria-hidden="true">
            <path d="M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4" />
          </svg>
        </button>
      </div>
    </div>
  );
}

function spoken({ node, hidden, children }: Place): string {
  const below = hidden > 0 ? plural(hidden, "hidden node") : plural(children.length, "child", "children");
  const kind = `${isFork(node) ? "fork, " : ""}${node.status === "ARCHIVED" ? "archived, " : ""}`;
  return `${node.label}, ${kind}${plural(node.turnCount, "turn")}, ${below}`;
}

/** Where an arrow key leads, as in any tree. */
function stepOf(key: string, here: Place | undefined, layout: Layout): Place | undefined {
  if (here === undefined) return undefined;
  const at = layout.order.indexOf(here);
  switch (key) {
    case "ArrowDown":
      return layout.order[at + 1];
    case "ArrowUp":
      return layout.order[at - 1];
    case "ArrowRight":
      return here.children[0];
    case "ArrowLeft":
      return here.parent;
    case "Home":
      return layout.order[0];
    case "End":
      return layout.order.at(-1);
    default:
      return undefined;
  }
}

/** Shows all of the forest; at `first` what fits its width, from the top, if all of it would be too small to read. */
function fit(stage: Stage | undefined, element: HTMLCanvasElement | null, layout: Layout, first = false) {
  if (stage === undefined || element === null) return;
  const { clientWidth: width, clientHeight: height } = element;
  const [across, down] = [layout.right - layout.left + COLUMN + 90, layout.bottom - layout.top + 120];
  const whole = Math.min(1.15, width / across, (height - 60) / down);
  const scale = first ? Math.max(whole, Math.min(0.8, Math.max(0.55, width / across))) : whole;
  const tall = down * scale > height;
  const x = Math.max(50 * scale, (width - across * scale) / 2 + 50 * scale) - layout.left * scale;
  const y = tall ? 90 - layout.top * scale : (height + 40 - (layout.top + layout.bottom) * scale) / 2;
  const target = zoomIdentity.translate(x, y).scale(scale);
  if (first) stage.zooming.transform(select(element), target);
  else stage.zooming.transform(select(element).transition().duration(calm()), target);
}

function bringIntoView(stage: Stage | undefined, element: HTMLCanvasElement | null, place: Place) {
  if (stage === undefined || element === null) return;
  const { x, y, k } = stage.painter.view;
  const [atX, atY] = [place.x * k + x, place.y * k + y];
  // Beside a wide picture, and below a narrow one, lies what is told of the node.
  const wide = element.clientWidth > 640;
  const right = element.clientWidth - (wide ? 540 : 160);
  const bottom = element.clientHeight * (wide ? 1 : 0.4) - 60;
  if (atX > 40 && atX < right && atY > 100 && atY < bottom && k > 0.35) return;
  const scale = Math.max(k, 0.7);
  const target = zoomIdentity
    .translate(Math.max(60, right * 0.6), (bottom + 60) / 2 + 20)
    .scale(scale)
    .translate(-place.x, -place.y);
  stage.zooming.transform(select(element).transition().duration(calm()), target);
}
