import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.TreeSet;

import org.apache.cassandra.config.DatabaseDescriptor;

/**
 * Loads a configuration as a node does at its start, and prints what came of it, key=value. With arguments it looks for methods instead:
 * each is interface#method and its number of parameters, and those that are missing are printed.
 */
public final class Load
{
    public static void main(String[] args) throws Exception
    {
        if (args.length > 0)
        {
            for (String arg : args)
                if (!exists(arg))
                    System.out.println("missing=" + arg);
            System.exit(0);
        }
        DatabaseDescriptor.daemonInitialization();
        print("cluster_name", DatabaseDescriptor.getClusterName());
        print("num_tokens", DatabaseDescriptor.getNumTokens());
        print("initial_tokens", DatabaseDescriptor.getInitialTokens());
        print("auto_bootstrap", DatabaseDescriptor.isAutoBootstrap());
        print("listen_address", DatabaseDescriptor.getListenAddress().getHostAddress());
        print("broadcast_address", DatabaseDescriptor.getBroadcastAddress() == null ? "" : DatabaseDescriptor.getBroadcastAddress().getHostAddress());
        print("rpc_address", DatabaseDescriptor.getRpcAddress().getHostAddress());
        print("broadcast_rpc_address", DatabaseDescriptor.getBroadcastRpcAddress().getHostAddress());
        print("ports", DatabaseDescriptor.getStoragePort() + " " + DatabaseDescriptor.getNativeTransportPort());
        TreeSet<String> seeds = new TreeSet<>();
        DatabaseDescriptor.getSeeds().forEach(s -> seeds.add(s.getHostAddress(false)));
        print("seeds", seeds);
        print("data_file_directories", Arrays.toString(DatabaseDescriptor.getAllDataFileLocations()));
        print("commitlog_directory", DatabaseDescriptor.getCommitLogLocation());
        print("location", DatabaseDescriptor.getEndpointSnitch().getLocalDatacenter() + " " + DatabaseDescriptor.getEndpointSnitch().getLocalRack());
        print("policies", DatabaseDescriptor.getDiskFailurePolicy() + " " + DatabaseDescriptor.getCommitFailurePolicy());
        print("block_for_peers", DatabaseDescriptor.getBlockForPeersTimeoutInSeconds());
        print("concurrent_reads", DatabaseDescriptor.getConcurrentReaders());
        print("read_timeout", DatabaseDescriptor.getReadRpcTimeout(java.util.concurrent.TimeUnit.MILLISECONDS));
        print("phi_convict_threshold", DatabaseDescriptor.getPhiConvictThreshold());
        print("start_native_transport", System.getProperty("cassandra.start_native_transport", "" + DatabaseDescriptor.startNativeTransport()));
        print("replace", System.getProperty("cassandra.replace_address_first_boot", ""));
        print("system_auth_rf", System.getProperty("cassandra.system_auth.default_rf", ""));
        print("heap", Runtime.getRuntime().maxMemory() >> 20);
        System.exit(0);
    }

    private static void print(String key, Object value)
    {
        System.out.println(key + "=" + value);
    }

    private static boolean exists(String description) throws Exception
    {
        String[] parts = description.split("#");
        for (Method m : Class.forName(parts[0]).getMethods())
            if (m.getName().equals(parts[1]) && m.getParameterCount() == Integer.parseInt(parts[2]))
                return true;
        return false;
    }
}
