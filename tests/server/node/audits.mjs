// Prints the audits of graphql-http that the server at this address does not pass, and how many there are, as JSON.
import { auditServer } from "graphql-http";

const results = await auditServer({ url: process.argv[2] });
const failed = results.filter(({ status }) => status !== "ok").map(({ id, name, reason }) => ({ id, name, reason }));
console.log(JSON.stringify({ count: results.length, failed }));
