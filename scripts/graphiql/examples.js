// One tab each. Together they are a first session, its fork, and what a frontend sees of them.
export const EXAMPLES = [
  {
    query: `# Who am I here, and what are the limits?
query Viewer {
  viewer {
    space
    role
    limits
  }
}
`,
  },
  {
    query: `# A session with one turn.
mutation FirstSession {
  createSession(input: { id: "trip", label: "A trip" }) {
    session {
      id
      head
    }
  }
  appendEvents(
    input: {
      sessionId: "trip"
      events: [
        { turnStart: { turnId: "1" } }
        { userMessage: { content: "Where to?" } }
        { assistantMessage: { content: "North." } }
        { turnEnd: { turnId: "1" } }
      ]
    }
  ) {
    firstSeq
    head
  }
}
`,
  },
  {
    query: `# Shares the first two events of "trip", and goes on by itself.
mutation Fork {
  forkSession(input: { sourceId: "trip", atSeq: 2, id: "other-way" }) {
    session {
      head
    }
  }
}
`,
  },
  {
    query: `query Forest {
  forest {
    nodes {
      id
      label
      depth
      parentId
      forkSeq
      head
    }
  }
}
`,
  },
  {
    query: `# Every event of the session, from the first on; stays open for those to come.
subscription Follow($id: ID!) {
  sessionEvents(sessionId: $id, fromSeq: 0) {
    seq
    type
    ... on UserMessage {
      content
    }
    ... on AssistantMessage {
      content
    }
  }
}
`,
    variables: `{
  "id": "trip"
}
`,
  },
];
