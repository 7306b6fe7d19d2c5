/** Cards, drawn as what they are. A card's payload is JSON of any shape: nothing here trusts it further than it looks. */

import { useState, type SubmitEvent, type ReactNode } from "react";
import { useMutation } from "urql";
import { useFresh } from "../follow";
import { shown } from "../format";
import { AppendEventsDocument, FormDefinitionDocument } from "../gql/graphql";
import { Problem } from "../problem";
import type { CardEntry } from "./conversation";

type Fields = Record<string, unknown>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const fieldsIn = (value: unknown) => list(value).filter(isFields);
const text = (value: unknown) => (value == null ? "" : shown(value));

export function Card({ entry, sessionId }: { entry: CardEntry; sessionId: string }) {
  const card = isFields(entry.card) ? entry.card : {};
  return (
    <section className="card" aria-label={`${entry.cardType} card`}>
      <header>
        <span className="kind">{NAMES[entry.cardType] ?? entry.cardType}</span>
        {entry.title ? <h3>{entry.title}</h3> : null}
      </header>
      {bodyOf(entry, card, sessionId)}
      {entry.degraded ? <p className="note">Read-only: {entry.degraded}</p> : null}
    </section>
  );
}

const NAMES: Record<string, string> = {
  ParameterSet: "Parameters",
  ColumnMatch: "Columns",
  WorkflowStatus: "Workflow",
  KnowledgeBase: "Knowledge",
  XyzLoadCard: "Load",
  GriddingParamCard: "Gridding",
};

function bodyOf(entry: CardEntry, card: Fields, sessionId: string): ReactNode {
  switch (entry.cardType) {
    case "Form":
      return <Form key={shown(card)} card={card} readOnly={entry.degraded != null} sessionId={sessionId} />;
    case "ParameterSet":
      return <Parameters card={card} />;
    case "Table":
      return <Table card={card} />;
    case "ColumnMatch":
      return <Columns card={card} />;
    case "WorkflowStatus":
      return <Workflow card={card} />;
    default:
      return <Free card={card} />;
  }
}

/** Sending a form appends its next version: a card of the same type and id takes the place of the one before. */
function Form({ card, readOnly, sessionId }: { card: Fields; readOnly: boolean; sessionId: string }) {
  const formId = text(card.formId);
  const { data } = useFresh(FormDefinitionDocument, { formId }, readOnly || formId === "");
  const [{ fetching, error }, append] = useMutation(AppendEventsDocument);
  const [key] = useState(() => crypto.randomUUID());
  const fields = fieldsIn(card.fields);
  const sent = card.status === "submitted";
  const send = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    const filled = fields.map((field) => ({ ...field, currentValue: given.get(text(field.id)) ?? field.currentValue }));
    const next = { ...card, fields: filled, status: "submitted" };
    void append({ input: { sessionId, events: [{ card: { cardType: "Form", card: next } }], idempotencyKey: key } });
  };
  return (
    <form className="fields" onSubmit={send}>
      {fields.map((field, index) => (
        <label key={index}>
          <span>{text(field.label ?? field.id)}</span>
          <input
            name={text(field.id)}
            defaultValue={text(field.currentValue)}
            inputMode={field.type === "number" ? "decimal" : undefined}
            readOnly={readOnly || sent}
            placeholder={readOnly ? "–" : undefined}
          />
        </label>
      ))}
      {readOnly || !data?.formDefinition || sent ? (
        <p className="note">{sent ? "Sent." : null}</p>
      ) : (
        <button type="submit" className="primary" disabled={fetching}>
          {text(card.submitLabel) || "Send"}
        </button>
      )}
      <Problem error={error} />
    </form>
  );
}

function Parameters({ card }: { card: Fields }) {
  return (
    <dl className="pairs">
      {fieldsIn(card.items).map((item, index) => (
        <div key={index}>
          <dt>{text(item.name)}</dt>
          <dd>
            <strong>{text(item.valueText)}</strong>
            {item.description == null ? null : <small>{text(item.description)}</small>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Table({ card }: { card: Fields }) {
  const names = list(card.columnNames);
  const rows = list(card.rows);
  const most = typeof card.maxPreviewRows === "number" ? card.maxPreviewRows : rows.length;
  const total = typeof card.totalRowCount === "number" ? card.totalRowCount : rows.length;
  const cells = (row: unknown) =>
    isFields(row) ? (names.length > 0 ? names.map((name) => row[text(name)]) : Object.values(row)) : list(row);
  const shownRows = rows.slice(0, most).map(cells);
  const isNumber = names.map((_, at) => shownRows.every((row) => typeof row[at] === "number"));
  return (
    <div className="scrolls" role="region" aria-label={text(card.title) || "Table"} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {names.map((name, index) => (
              <th key={index} scope="col" className={isNumber[index] ? "number" : undefined}>
                {text(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shownRows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, at) => (
                <td key={at} className={isNumber[at] ? "number" : undefined}>
                  {text(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {total > Math.min(most, rows.length) ? <p className="note">{total} rows in all</p> : null}
    </div>
  );
}

function Columns({ card }: { card: Fields }) {
  const matched = new Map(fieldsIn(card.mappings).map((one) => [text(one.requiredColumn), text(one.matchedColumn)]));
  const required = [...new Set([...list(card.requiredColumns).map(columnName), ...matched.keys()])];
  return (
    <ul className="matches">
      {required.map((name) => (
        <li key={name}>
          <span>{name}</span>
          <span aria-hidden="true">←</span>
          {matched.get(name) ? <code>{matched.get(name)}</code> : <em>not matched</em>}
        </li>
      ))}
    </ul>
  );
}

const columnName = (column: unknown) => text(isFields(column) ? (column.name ?? column.label) : column);

const DONE = new Set(["done", "completed", "complete", "success", "finished"]);
const NOW = new Set(["running", "active", "current", "in_progress", "in progress"]);
const BAD = new Set(["failed", "error"]);

function Workflow({ card }: { card: Fields }) {
  const place = (step: Fields, index: number) => (typeof step.order === "number" ? step.order : index);
  const steps = fieldsIn(card.steps).map((step, index) => ({ step, at: place(step, index) }));
  return (
    <ol className="workflow">
      {steps
        .sort((a, b) => a.at - b.at)
        .map(({ step }, index) => {
          const status = text(step.status);
          const state = status.toLowerCase();
          const mark = DONE.has(state) ? "done" : NOW.has(state) ? "now" : BAD.has(state) ? "bad" : "open";
          return (
            <li key={index} data-state={mark}>
              <span>{text(step.displayName ?? step.id)}</span>
              <small>{status}</small>
            </li>
          );
        })}
    </ol>
  );
}

const OWN = new Set(["type", "id", "title"]);

function Free({ card }: { card: Fields }) {
  const fields = Object.entries(card).filter(([name]) => !OWN.has(name));
  return (
    <dl className="pairs">
      {fields.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{Array.isArray(value) && value.every((one) => typeof one !== "object") ? value.join(", ") : text(value)}</dd>
        </div>
      ))}
    </dl>
  );
}
