"""One call of every root field, with ids of a space that is not the caller's.

`$foreign` is such an id, `$own` a session of the caller. A field may have several calls. What only reads, or names no
id, must be as empty as for an id that nobody has.
"""

DOCUMENT = "sessionId: elsewhere\\ntitle: x\\nentries:\\n- kind: Text\\n  role: User\\n  content: x\\n"
SESSION = "{ session { id } }"
RESULTS = "{ results { code message } }"
EVENTS = '[{userMessage: {content: "x"}}]'

QUERIES = {
    "session": ["session(id: $foreign) { id label head node { id } memory { content } }"],
    "sessions": ["sessions(ids: [$foreign, $own]) { id label }"],
    "listSessions": [
        "listSessions(underId: $foreign) { nodes { id } totalCount }",
        "listSessions(first: 200) { nodes { id label } totalCount }",
    ],
    "topologyNode": ["topologyNode(id: $foreign) { id label refs }"],
    "roots": ["roots { id label }"],
    "forest": ["forest(rootId: $foreign) { nodes { id } refs { fromId } }", "forest { nodes { id label } nodeCount }"],
    "digest": ["digest(id: $foreign) { id memory { content } }"],
    "digests": [
        "digests(ids: [$foreign]) { nodes { id memory { content } } }",
        "digests(underId: $foreign) { nodes { id memory { content } } }",
        "digests { nodes { id label memory { content } } }",
    ],
    "runs": ["runs(sessionId: $foreign) { nodes { id query } }", "runs { nodes { id query } }"],
    "run": ['run(sessionId: $foreign, turnId: "turn") { id query }'],
    "exportSession": [f"exportSession(id: $foreign, format: {format})" for format in ("YAML", "JSONL", "OPENAI")],
    "formDefinition": ["formDefinition(formId: $foreign) { formId definition }"],
    "formDefinitions": ["formDefinitions { formId definition }"],
    "viewer": ["viewer { space role }"],
}

MUTATIONS = {
    "createSession": [
        f"createSession(input: {{parentId: $foreign}}) {SESSION}",
        f"createSession(input: {{sourceSessionId: $foreign}}) {SESSION}",
    ],
    "createSessions": [
        "createSessions(inputs: [{parentId: $foreign}, {sourceSessionId: $foreign}, {}]) { results { code message } }"
    ],
    "forkSession": [
        f"forkSession(input: {{sourceId: $foreign}}) {SESSION}",
        f"forkSession(input: {{sourceId: $own, parentId: $foreign}}) {SESSION}",
    ],
    "appendEvents": [
        f"appendEvents(input: {{sessionId: $foreign, events: {EVENTS}}}) {{ head }}",
        f'appendEvents(input: {{sessionId: $foreign, idempotencyKey: "key", events: {EVENTS}}}) {{ events {{ id }} }}',
    ],
    "appendBatch": [
        f"appendBatch(inputs: [{{sessionId: $foreign, events: {EVENTS}}}]) {{ results {{ code message head }} }}"
    ],
    "updateSession": [f'updateSession(input: {{id: $foreign, label: "x"}}) {SESSION}'],
    "renameSession": [f'renameSession(id: $foreign, label: "x") {SESSION}'],
    "archiveSession": [f"archiveSession(id: $foreign) {SESSION}"],
    "restoreSession": [f"restoreSession(id: $foreign) {SESSION}"],
    "deleteSession": [
        "deleteSession(id: $foreign) { deletedIds }",
        "deleteSession(id: $foreign, cascade: true) { deletedIds }",
    ],
    "moveNode": [
        f"moveNode(id: $foreign, toRoot: true) {SESSION}",
        f"moveNode(id: $foreign, parentId: $own) {SESSION}",
        f"moveNode(id: $own, parentId: $foreign) {SESSION}",
    ],
    "addRef": [
        "addRef(fromId: $foreign, toId: $own) { ref { toId } }",
        "addRef(fromId: $own, toId: $foreign) { ref { toId } }",
    ],
    "removeRef": [
        "removeRef(fromId: $foreign, toId: $own) { ref { toId } }",
        "removeRef(fromId: $own, toId: $foreign) { ref { toId } }",
    ],
    "putConfig": [f'putConfig(sessionId: $foreign, config: {{systemPrompt: "x"}}) {SESSION}'],
    "putSystemPrompt": [
        'putSystemPrompt(sessionId: $foreign, content: "x") { slot { version } }',
        'putSystemPrompt(sessionId: $foreign, content: "x", ifVersion: 0) { slot { version } }',
    ],
    "putMemory": ['putMemory(input: {sessionId: $foreign, content: "x"}) { slot { version } }'],
    "putInsight": ['putInsight(input: {sessionId: $foreign, content: "x", mode: APPEND}) { slot { content } }'],
    "putMemories": [
        f'putMemories(inputs: [{{sessionId: $foreign, content: "x"}}], atomic: {atomic}) {RESULTS}'
        for atomic in ("true", "false")
    ],
    "putInsights": [
        f'putInsights(inputs: [{{sessionId: $foreign, content: "x"}}], atomic: {atomic}) {RESULTS}'
        for atomic in ("true", "false")
    ],
    "clearInsight": ["clearInsight(sessionId: $foreign) { sessionId }"],
    "consumeInsight": [
        "consumeInsight(sessionId: $foreign) { insight { content } }",
        'consumeInsight(sessionId: $foreign, version: 1, idempotencyKey: "key") { insight { content } }',
    ],
    "trimRecords": [f"trimRecords(sessionId: $foreign, keepRecent: 0) {SESSION}"],
    "removeLastEntry": [f"removeLastEntry(sessionId: $foreign) {SESSION}"],
    "clearConversation": [f"clearConversation(sessionId: $foreign) {SESSION}"],
    "repairSession": ["repairSession(sessionId: $foreign) { head }"],
    "setRunFeedback": ['setRunFeedback(sessionId: $foreign, turnId: "turn", feedback: "x") { run { id } }'],
    "putFormDefinition": ["putFormDefinition(formId: $foreign, definition: {x: 1}) { formDefinition { formId } }"],
    "importSession": [f'importSession(document: "{DOCUMENT}", parentId: $foreign) {{ sessions {{ id }} }}'],
}

SUBSCRIPTIONS = {
    "sessionEvents": [
        "sessionEvents(sessionId: $foreign, fromSeq: 0) { id }",
        "sessionEvents(sessionId: $foreign) { id }",
    ],
    "spaceEvents": [
        "spaceEvents(rootId: $foreign) { id }",
        "spaceEvents(positions: [{sessionId: $foreign, fromSeq: 0}]) { id }",
    ],
    "forestChanges": ["forestChanges(rootId: $foreign) { __typename }"],
    "slotChanges": [
        "slotChanges(sessionId: $foreign) { sessionId }",
        "slotChanges(rootId: $foreign) { sessionId }",
    ],
}

ALL = {"query": QUERIES, "mutation": MUTATIONS, "subscription": SUBSCRIPTIONS}


def document(operation: str, call: str) -> str:
    """An operation of one call, with the variables that it uses."""
    used = [name for name in ("foreign", "own") if f"${name}" in call]
    variables = f"({', '.join(f'${name}: ID!' for name in used)})" if used else ""
    return f"{operation}{variables} {{ {call} }}"
