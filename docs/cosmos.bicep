// The database and the containers of a store in Azure Cosmos DB, for accounts that are used with Entra ID: with such a
// credential the library can't make them. What it makes with a key is the same.
//
//   az deployment group create --resource-group <group> --template-file docs/cosmos.bicep --parameters account=<account>

param account string
param database string = 'amplifier-db'
param dimensions int = 3072
@description('The kind of index over vectors; flat takes at most 505 dimensions.')
@allowed(['quantizedFlat', 'diskANN', 'flat'])
param vectorIndex string = 'quantizedFlat'
@description('Request units a second that the database scales up to; its containers share them.')
param maxThroughput int = 1000

resource cosmos 'Microsoft.DocumentDB/databaseAccounts@2024-11-15' existing = {
  name: account
}

resource db 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases@2024-11-15' = {
  parent: cosmos
  name: database
  properties: {
    resource: { id: database }
    options: { autoscaleSettings: { maxThroughput: maxThroughput } }
  }
}

var everythingElse = [{ path: '/*' }]

resource sessions 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: db
  name: 'sessions'
  properties: {
    resource: {
      id: 'sessions'
      partitionKey: { paths: ['/user_id'], kind: 'Hash', version: 2 }
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: [
          { path: '/user_id/?' }, { path: '/session_id/?' }, { path: '/type/?' }, { path: '/committed/?' }
          { path: '/project_slug/?' }, { path: '/updated/?' }, { path: '/created/?' }, { path: '/bundle/?' }
          { path: '/parent_id/?' }, { path: '/visibility/?' }, { path: '/org_id/?' }, { path: '/team_ids/[]/?' }
          { path: '/tags/[]/?' }, { path: '/repository/?' }, { path: '/sync_state/?' }
        ]
        excludedPaths: everythingElse
        compositeIndexes: [[
          { path: '/updated', order: 'descending' }
          { path: '/user_id', order: 'ascending' }
          { path: '/session_id', order: 'ascending' }
        ]]
      }
    }
  }
}

resource messages 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: db
  name: 'transcript_messages'
  properties: {
    resource: {
      id: 'transcript_messages'
      partitionKey: { paths: ['/user_id_session_id'], kind: 'Hash', version: 2 }
      vectorEmbeddingPolicy: {
        vectorEmbeddings: [
          { path: '/vector', dataType: 'float32', dimensions: dimensions, distanceFunction: 'cosine' }
        ]
      }
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: [
          { path: '/user_id_session_id/?' }, { path: '/user_id/?' }, { path: '/session_id/?' }, { path: '/type/?' }
          { path: '/sequence/?' }, { path: '/vectors/?' }, { path: '/made/[]/?' }, { path: '/generation/?' }
          { path: '/role/?' }, { path: '/ts/?' }, { path: '/terms/?' }
        ]
        excludedPaths: everythingElse
        vectorIndexes: [{ path: '/vector', type: vectorIndex }]
        compositeIndexes: [[
          { path: '/user_id', order: 'ascending' }
          { path: '/session_id', order: 'ascending' }
          { path: '/sequence', order: 'ascending' }
        ]]
      }
    }
  }
}

resource events 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: db
  name: 'events'
  properties: {
    resource: {
      id: 'events'
      partitionKey: { paths: ['/user_id_session_id'], kind: 'Hash', version: 2 }
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: [
          { path: '/user_id/?' }, { path: '/session_id/?' }, { path: '/type/?' }, { path: '/sequence/?' }
          { path: '/event_id/?' }, { path: '/ts/?' }, { path: '/event_type/?' }, { path: '/tool_name/?' }
          { path: '/model/?' }, { path: '/provider/?' }, { path: '/level/?' }, { path: '/error_type/?' }
        ]
        excludedPaths: everythingElse
        compositeIndexes: [[
          { path: '/ts', order: 'descending' }
          { path: '/user_id', order: 'descending' }
          { path: '/session_id', order: 'descending' }
          { path: '/sequence', order: 'descending' }
        ]]
      }
    }
  }
}

resource chunks 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: db
  name: 'event_chunks'
  properties: {
    resource: {
      id: 'event_chunks'
      partitionKey: { paths: ['/user_id_session_id'], kind: 'Hash', version: 2 }
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: []
        excludedPaths: everythingElse
      }
    }
  }
}
