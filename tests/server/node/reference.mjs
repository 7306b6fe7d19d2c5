// The reference server of graphql-transport-ws; prints its port.
import { GraphQLInt, GraphQLObjectType, GraphQLSchema, GraphQLString } from "graphql";
import { useServer } from "graphql-ws/use/ws";
import { WebSocketServer } from "ws";

const query = new GraphQLObjectType({ name: "Query", fields: { hello: { type: GraphQLString, resolve: () => "x" } } });
const subscription = new GraphQLObjectType({
  name: "Subscription",
  fields: {
    waiting: {
      type: GraphQLInt,
      subscribe: async function* () {
        await new Promise(() => {});
      },
    },
  },
});
const server = new WebSocketServer({ host: "127.0.0.1", port: 0, path: "/graphql" });
useServer({ schema: new GraphQLSchema({ query, subscription }) }, server);
server.on("listening", () => console.log(server.address().port));
