//! Actions, and the privileges that grant them.

use serde::{Deserialize, Serialize};

/// The list of a role that grants an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Indices: a role names them together with the privileges.
    Index,
    /// Everything that belongs to no index.
    Cluster,
}

/// Declares the [`Action`] enum with the names of the actions and the privileges that grant them, by scope.
macro_rules! actions {
    ($($scope:ident { $($(#[$about:meta])* $variant:ident = $name:literal by $privileges:literal,)+ })+) => {
        /// An action for which privileges are granted, by the name that the sentence of a refusal gives it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Action {
            $($($(#[$about])* #[serde(rename = $name)] $variant,)+)+
        }

        impl Action {
            /// All actions. The order is that of the tables which the HTTP layer reads.
            pub const ALL: &[Self] = &[$($(Self::$variant,)+)+];

            /// The action's name in messages and in the HTTP layer, such as `indices:data/read/search`.
            pub fn name(self) -> &'static str {
                match self {
                    $($(Self::$variant => $name,)+)+
                }
            }

            /// Whether roles grant the action on indices or on the cluster as a whole.
            pub fn scope(self) -> Scope {
                match self {
                    $($(Self::$variant)|+ => Scope::$scope,)+
                }
            }

            /// Names of the privileges that grant the action, with spaces between them; see [`Self::privileges`].
            fn by(self) -> &'static str {
                match self {
                    $($(Self::$variant => $privileges,)+)+
                }
            }
        }
    };
}

actions! {
    Index {
        CreateIndex = "indices:admin/create" by "create_index manage all",
        /// Creating an index implicitly by writing to it.
        AutoCreate = "indices:admin/auto_create" by "auto_configure create_index manage all",
        GetIndex = "indices:admin/get" by "view_index_metadata manage all",
        DeleteIndex = "indices:admin/delete" by "delete_index manage all",
        GetMapping = "indices:admin/mappings/get" by "view_index_metadata manage all",
        PutMapping = "indices:admin/mapping/put" by "manage all",
        GetSettings = "indices:monitor/settings/get" by "monitor view_index_metadata manage all",
        PutSettings = "indices:admin/settings/update" by "manage all",
        Analyze = "indices:admin/analyze" by "manage all",
        /// Changing aliases: needed on the indices and on the aliases.
        Aliases = "indices:admin/aliases" by "manage all",
        GetAliases = "indices:admin/aliases/get" by "view_index_metadata manage all",
        Close = "indices:admin/close" by "manage all",
        Open = "indices:admin/open" by "manage all",
        AddBlock = "indices:admin/block/add" by "manage all",
        RemoveBlock = "indices:admin/block/remove" by "manage all",
        ForceMerge = "indices:admin/forcemerge" by "maintenance manage all",
        ClearCache = "indices:admin/cache/clear" by "maintenance manage all",
        ResolveIndex = "indices:admin/resolve/index" by "view_index_metadata manage read all",
        GetDataStream = "indices:admin/data_stream/get" by "view_index_metadata manage all",
        CreateDataStream = "indices:admin/data_stream/create" by "create_index manage all",
        DeleteDataStream = "indices:admin/data_stream/delete" by "delete_index manage all",
        Rollover = "indices:admin/rollover" by "manage all",
        Resize = "indices:admin/resize" by "manage all",
        /// Changing the model of a field, and each step of that.
        ChangeModel = "indices:admin/ext/model/change" by "manage all",
        GetFieldModels = "indices:admin/ext/model/get" by "view_index_metadata manage all",
        Refresh = "indices:admin/refresh" by "maintenance manage all",
        Flush = "indices:admin/flush" by "maintenance manage all",
        Segments = "indices:monitor/segments" by "monitor manage all",
        Recovery = "indices:monitor/recovery" by "monitor manage all",
        Stats = "indices:monitor/stats" by "monitor manage all",
        Search = "indices:data/read/search" by "read all",
        Explain = "indices:data/read/explain" by "read all",
        MultiSearch = "indices:data/read/msearch" by "read all",
        RankEval = "indices:data/read/rank_eval" by "read all",
        SearchTemplate = "indices:data/read/search/template" by "read all",
        MultiSearchTemplate = "indices:data/read/msearch/template" by "read all",
        SubmitAsyncSearch = "indices:data/read/async_search/submit" by "read all",
        GetAsyncSearch = "indices:data/read/async_search/get" by "read all",
        DeleteAsyncSearch = "indices:data/read/async_search/delete" by "read all",
        Scroll = "indices:data/read/scroll" by "read all",
        ClearScroll = "indices:data/read/scroll/clear" by "read all",
        OpenPointInTime = "indices:data/read/open_point_in_time" by "read all",
        ClosePointInTime = "indices:data/read/close_point_in_time" by "read all",
        FieldCaps = "indices:data/read/field_caps" by "read view_index_metadata manage all",
        TermsEnum = "indices:data/read/xpack/termsenum/list" by "read all",
        TermVectors = "indices:data/read/tv" by "read all",
        MultiTermVectors = "indices:data/read/mtv" by "read all",
        ValidateQuery = "indices:admin/validate/query" by "view_index_metadata manage all",
        SearchShards = "indices:admin/shards/search_shards" by "view_index_metadata manage all",
        GetFieldMapping = "indices:admin/mappings/fields/get" by "view_index_metadata manage all",
        /// Reading a document by its id, including documents that a query refers to by id.
        Get = "indices:data/read/get" by "read all",
        MultiGet = "indices:data/read/mget" by "read all",
        /// Any write of a whole document; depending on the write, one of the next two is needed too.
        Index = "indices:data/write/index" by "create_doc create index write all",
        /// Adding a document whose id does not exist yet, or that has no id.
        Create = "indices:data/write/index:op_type/create" by "create_doc create index write all",
        /// Writing a document whether or not its id exists.
        Overwrite = "indices:data/write/index:op_type/index" by "create index write all",
        Update = "indices:data/write/update" by "index write all",
        Delete = "indices:data/write/delete" by "delete write all",
        Bulk = "indices:data/write/bulk" by "create_doc create delete index write all",
        Reindex = "indices:data/write/reindex" by "index write all",
        UpdateByQuery = "indices:data/write/update/byquery" by "index write all",
        DeleteByQuery = "indices:data/write/delete/byquery" by "delete write all",
    }
    Cluster {
        Main = "cluster:monitor/main" by "monitor manage all",
        Health = "cluster:monitor/health" by "monitor manage all",
        NodesStats = "cluster:monitor/nodes/stats" by "monitor manage all",
        NodesInfo = "cluster:monitor/nodes/info" by "monitor manage all",
        HotThreads = "cluster:monitor/nodes/hot_threads" by "monitor manage all",
        ClusterState = "cluster:monitor/state" by "monitor manage all",
        ClusterStats = "cluster:monitor/stats" by "monitor manage all",
        GetClusterSettings = "cluster:monitor/settings" by "monitor manage all",
        PendingTasks = "cluster:monitor/task" by "monitor manage all",
        HealthReport = "cluster:monitor/health_api" by "monitor manage all",
        XpackInfo = "cluster:monitor/xpack/info" by "monitor manage all",
        GetLicense = "cluster:monitor/xpack/license/get" by "monitor manage all",
        RemoteInfo = "cluster:monitor/remote/info" by "monitor manage all",
        GetScript = "cluster:admin/script/get" by "manage all",
        PutScript = "cluster:admin/script/put" by "manage all",
        DeleteScript = "cluster:admin/script/delete" by "manage all",
        PutClusterSettings = "cluster:admin/settings/update" by "manage all",
        GetTask = "cluster:monitor/task/get" by "monitor manage all",
        ListTasks = "cluster:monitor/tasks/lists" by "monitor manage all",
        CancelTasks = "cluster:admin/tasks/cancel" by "manage all",
        Rethrottle = "cluster:admin/reindex/rethrottle" by "manage all",
        PutPipeline = "cluster:admin/ingest/pipeline/put" by "manage_ingest_pipelines manage_pipeline manage all",
        GetPipeline = "cluster:admin/ingest/pipeline/get"
            by "read_pipeline manage_ingest_pipelines manage_pipeline manage all",
        DeletePipeline = "cluster:admin/ingest/pipeline/delete"
            by "manage_ingest_pipelines manage_pipeline manage all",
        SimulatePipeline = "cluster:admin/ingest/pipeline/simulate"
            by "read_pipeline manage_ingest_pipelines manage_pipeline manage all",
        MlInfo = "cluster:monitor/xpack/ml/info/get" by "monitor_ml manage_ml monitor manage all",
        GetTrainedModels = "cluster:monitor/xpack/ml/inference/get" by "monitor_ml manage_ml monitor manage all",
        TrainedModelStats = "cluster:monitor/xpack/ml/inference/stats/get"
            by "monitor_ml manage_ml monitor manage all",
        InferTrainedModel = "cluster:monitor/xpack/ml/inference/infer" by "monitor_ml manage_ml monitor manage all",
        StartDeployment = "cluster:admin/xpack/ml/trained_models/deployment/start" by "manage_ml manage all",
        StopDeployment = "cluster:admin/xpack/ml/trained_models/deployment/stop" by "manage_ml manage all",
        UpdateDeployment = "cluster:admin/xpack/ml/trained_models/deployment/update" by "manage_ml manage all",
        PutTrainedModel = "cluster:admin/xpack/ml/inference/put" by "manage_ml manage all",
        DeleteTrainedModel = "cluster:admin/xpack/ml/inference/delete" by "manage_ml manage all",
        PutTrainedModelPart = "cluster:admin/xpack/ml/trained_models/part/put" by "manage_ml manage all",
        PutTrainedModelVocabulary = "cluster:admin/xpack/ml/trained_models/vocabulary/put" by "manage_ml manage all",
        PutTrainedModelAlias = "cluster:admin/xpack/ml/inference/model_aliases/put" by "manage_ml manage all",
        DeleteTrainedModelAlias = "cluster:admin/xpack/ml/inference/model_aliases/delete" by "manage_ml manage all",
        PutInference = "cluster:admin/xpack/inference/put" by "manage_inference manage all",
        UpdateInference = "cluster:admin/xpack/inference/update" by "manage_inference manage all",
        DeleteInference = "cluster:admin/xpack/inference/delete" by "manage_inference manage all",
        GetInference = "cluster:monitor/xpack/inference/get"
            by "monitor_inference manage_inference monitor manage all",
        Infer = "cluster:monitor/xpack/inference/post" by "monitor_inference manage_inference monitor manage all",
        PutIndexTemplate = "indices:admin/index_template/put" by "manage_index_templates manage all",
        GetIndexTemplate = "indices:admin/index_template/get" by "manage_index_templates manage all",
        DeleteIndexTemplate = "indices:admin/index_template/delete" by "manage_index_templates manage all",
        SimulateIndexTemplate = "indices:admin/index_template/simulate_index" by "manage_index_templates manage all",
        PutComponentTemplate = "cluster:admin/component_template/put" by "manage_index_templates manage all",
        GetComponentTemplate = "cluster:admin/component_template/get" by "manage_index_templates manage all",
        DeleteComponentTemplate = "cluster:admin/component_template/delete" by "manage_index_templates manage all",
        PutTemplate = "indices:admin/template/put" by "manage_index_templates manage all",
        GetTemplate = "indices:admin/template/get" by "manage_index_templates manage all",
        DeleteTemplate = "indices:admin/template/delete" by "manage_index_templates manage all",
        GetRepository = "cluster:admin/repository/get" by "monitor_snapshot create_snapshot manage all",
        PutRepository = "cluster:admin/repository/put" by "manage all",
        DeleteRepository = "cluster:admin/repository/delete" by "manage all",
        VerifyRepository = "cluster:admin/repository/verify" by "manage all",
        CleanUpRepository = "cluster:admin/repository/_cleanup" by "manage all",
        GetSnapshot = "cluster:admin/snapshot/get" by "monitor_snapshot create_snapshot manage all",
        SnapshotStatus = "cluster:admin/snapshot/status" by "monitor_snapshot create_snapshot manage all",
        CreateSnapshot = "cluster:admin/snapshot/create" by "create_snapshot manage all",
        CloneSnapshot = "cluster:admin/snapshot/clone" by "manage all",
        DeleteSnapshot = "cluster:admin/snapshot/delete" by "manage all",
        RestoreSnapshot = "cluster:admin/snapshot/restore" by "manage all",
        Upgrade = "cluster:admin/xpack/upgrade" by "manage all",
        UpgradeInfo = "cluster:monitor/xpack/upgrade/info" by "monitor manage all",
        CreateApiKey = "cluster:admin/xpack/security/api_key/create"
            by "manage_own_api_key manage_api_key manage_security all",
        GetApiKeys = "cluster:admin/xpack/security/api_key/get"
            by "manage_own_api_key manage_api_key read_security manage_security all",
        InvalidateApiKeys = "cluster:admin/xpack/security/api_key/invalidate"
            by "manage_own_api_key manage_api_key manage_security all",
        QueryApiKeys = "cluster:admin/xpack/security/api_key/query"
            by "manage_own_api_key manage_api_key read_security manage_security all",
        UpdateApiKey = "cluster:admin/xpack/security/api_key/update"
            by "manage_own_api_key manage_api_key manage_security all",
        BulkUpdateApiKeys = "cluster:admin/xpack/security/api_key/bulk_update"
            by "manage_own_api_key manage_api_key manage_security all",
    }
}

impl Action {
    /// The privileges that name it directly, narrowest first: the order of the sentence that refuses it. A broader
    /// privilege also grants what the privileges that it implies grant.
    pub fn privileges(self) -> impl Iterator<Item = &'static str> {
        self.by().split(' ')
    }

    /// Whether the bodies of its requests name indices, of which each is then refused by itself.
    pub fn is_composite(self) -> bool {
        matches!(
            self,
            Self::Bulk
                | Self::Reindex
                | Self::MultiGet
                | Self::MultiTermVectors
                | Self::MultiSearch
                | Self::Scroll
                | Self::ClearScroll
                | Self::ClosePointInTime
        )
    }
}
