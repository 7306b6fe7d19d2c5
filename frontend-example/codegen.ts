import type { CodegenConfig } from "@graphql-codegen/cli";

// Types of every operation in src/, made from the schema that the server is built with.
const config: CodegenConfig = {
  schema: "../schema/schema.graphql",
  documents: "src/**/*.graphql",
  generates: {
    "src/gql/": {
      preset: "client",
      presetConfig: { fragmentMasking: false },
      config: {
        useTypeImports: true,
        enumsAsTypes: true,
        scalars: { DateTime: "string", JSON: "unknown" },
      },
    },
  },
};

export default config;
