import java.io.PrintStream;
import java.lang.annotation.Annotation;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Writes the table of settings that the releases of one line of Cassandra know, as JSON, to standard output.
 *
 * Usage: java -cp <dependencies of cassandra-all> Export.java LINE RELEASE=JAR ...   (releases in ascending order)
 *
 * What a release accepts is asked of its own classes: Properties.defaultLoader() names the keys exactly as YamlConfigurationLoader
 * sees them, Replacements names the old ones and their converters, and a new Config() holds the defaults.
 */
public final class Export
{
    private static final int MAX_DEPTH = 4;

    private final ClassLoader loader;
    private final Object propertyLoader;
    private final Method getProperties;
    private final Map<?, ?> replacements;

    private Export(ClassLoader loader) throws Exception
    {
        this.loader = loader;
        Class<?> properties = loader.loadClass("org.apache.cassandra.config.Properties");
        Class<?> loaderType = loader.loadClass("org.apache.cassandra.config.Loader");
        Method defaultLoader = properties.getMethod("defaultLoader");
        this.propertyLoader = defaultLoader.invoke(null);
        this.getProperties = loaderType.getMethod("getProperties", Class.class);
        Class<?> r = loader.loadClass("org.apache.cassandra.config.Replacements");
        this.replacements = (Map<?, ?>) r.getMethod("getNameReplacements", Class.class).invoke(null, config());
    }

    private Class<?> config() throws Exception
    {
        return loader.loadClass("org.apache.cassandra.config.Config");
    }

    public static void main(String[] args) throws Exception
    {
        String line = args[0];
        List<String> releases = new ArrayList<>();
        Map<String, Map<String, Object>> merged = new TreeMap<>();
        for (int i = 1; i < args.length; i++)
        {
            String release = args[i].substring(0, args[i].indexOf('='));
            URL jar = Path.of(args[i].substring(args[i].indexOf('=') + 1)).toUri().toURL();
            String previous = releases.isEmpty() ? null : releases.get(releases.size() - 1);
            releases.add(release);
            try (URLClassLoader child = new URLClassLoader(new URL[]{ jar }, Export.class.getClassLoader()))
            {
                Export export = new Export(child);
                Map<String, Map<String, Object>> known = export.settings();
                for (Map.Entry<String, Map<String, Object>> e : known.entrySet())
                {
                    Map<String, Object> before = merged.get(e.getKey());
                    if (before == null && previous != null)
                        e.getValue().put("since", release);
                    if (before != null && before.containsKey("since"))
                        e.getValue().put("since", before.get("since"));
                    merged.put(e.getKey(), e.getValue());
                }
                for (Map.Entry<String, Map<String, Object>> e : merged.entrySet())
                    if (!known.containsKey(e.getKey()) && !e.getValue().containsKey("removed"))
                        e.getValue().put("removed", release);
            }
        }
        Map<String, Object> table = new LinkedHashMap<>();
        table.put("line", line);
        table.put("releases", releases);
        table.put("settings", new ArrayList<Object>(merged.values()));
        print(new PrintStream(System.out, true, StandardCharsets.UTF_8), table, "");
        System.out.println();
    }

    /** Settings by name, new and old names alike. */
    private Map<String, Map<String, Object>> settings() throws Exception
    {
        Map<String, Map<String, Object>> out = new TreeMap<>();
        Object defaults = config().getConstructor().newInstance();
        fields(config(), defaults, 0).forEach((name, setting) -> out.put(name, setting));
        Map<?, ?> old = (Map<?, ?>) replacements.get(config());
        if (old != null)
            for (Object replacement : old.values())
            {
                Map<String, Object> setting = renamed(replacement);
                // A replacement of a name by itself only adds a form of the value: key_cache_save_period without a unit.
                if (setting.get("name").equals(setting.get("replacedBy")))
                    out.get(setting.get("name")).put("plain", setting.get("type"));
                else
                    out.put((String) setting.get("name"), setting);
            }
        return out;
    }

    private Map<String, Object> renamed(Object replacement) throws Exception
    {
        Map<String, Object> setting = new LinkedHashMap<>();
        Class<?> type = (Class<?>) field(replacement, "oldType");
        setting.put("name", field(replacement, "oldName"));
        setting.put("replacedBy", field(replacement, "newName"));
        describe(setting, type, type, 0);
        setting.put("converter", field(replacement, "converter").toString());
        if ((Boolean) field(replacement, "deprecated"))
            setting.put("deprecated", true);
        return setting;
    }

    private Map<String, Map<String, Object>> fields(Class<?> type, Object defaults, int depth) throws Exception
    {
        Map<String, Map<String, Object>> out = new TreeMap<>();
        for (Map.Entry<?, ?> entry : ((Map<?, ?>) getProperties.invoke(propertyLoader, type)).entrySet())
        {
            // The key is the name in cassandra.yaml; the property itself may still have the name of its Java field.
            String name = (String) entry.getKey();
            Object property = entry.getValue();
            Method getName = property.getClass().getMethod("getName");
            getName.setAccessible(true);
            Map<String, Object> setting = new LinkedHashMap<>();
            setting.put("name", name);
            Field field = fieldNamed(type, (String) getName.invoke(property));
            Method getType = property.getClass().getMethod("getType");
            getType.setAccessible(true);
            Class<?> raw = (Class<?>) getType.invoke(property);
            describe(setting, raw, field == null ? raw : field.getGenericType(), depth);
            if (field != null)
            {
                for (Annotation a : field.getAnnotations())
                    if (a.annotationType().getSimpleName().equals("Deprecated"))
                        setting.put("deprecated", true);
                String value = plain(defaults, field);
                if (value != null)
                    setting.put("default", value);
            }
            out.put(name, setting);
        }
        return out;
    }

    private static Field fieldNamed(Class<?> type, String name)
    {
        for (Class<?> c = type; c != null; c = c.getSuperclass())
            for (Field f : c.getDeclaredFields())
                if (f.getName().equals(name) && !Modifier.isStatic(f.getModifiers()))
                    return f;
        return null;
    }

    /** The default as the text that cassandra.yaml would hold, for values that are one word; null for all others. */
    private static String plain(Object holder, Field field) throws Exception
    {
        if (holder == null || !Modifier.isPublic(field.getModifiers()))
            return null;
        Object value = field.get(holder);
        if (value == null)
            return null;
        if (value instanceof Number || value instanceof Boolean || value instanceof String || value instanceof Enum || isSpec(value.getClass()))
            return value.toString();
        return null;
    }

    private void describe(Map<String, Object> out, Class<?> raw, Type generic, int depth) throws Exception
    {
        if (raw == boolean.class || raw == Boolean.class)
            out.put("type", "boolean");
        else if (raw == int.class || raw == Integer.class || raw == short.class || raw == Short.class)
            out.put("type", "int");
        else if (raw == long.class || raw == Long.class)
            out.put("type", "long");
        else if (raw == double.class || raw == Double.class || raw == float.class || raw == Float.class)
            out.put("type", "double");
        else if (raw == String.class)
            out.put("type", "string");
        else if (raw.isEnum())
        {
            out.put("type", "enum");
            List<Object> values = new ArrayList<>();
            for (Object c : raw.getEnumConstants())
                values.add(((Enum<?>) c).name());
            out.put("values", values);
        }
        else if (isSpec(raw))
            describeSpec(out, raw);
        else if (raw.isArray())
        {
            out.put("type", "list");
            out.put("element", element(raw.getComponentType(), depth));
        }
        else if (Iterable.class.isAssignableFrom(raw))
        {
            out.put("type", "list");
            if (generic instanceof ParameterizedType)
                out.put("element", element(((ParameterizedType) generic).getActualTypeArguments()[0], depth));
        }
        else if (Map.class.isAssignableFrom(raw))
        {
            out.put("type", "map");
            if (generic instanceof ParameterizedType)
                out.put("element", element(((ParameterizedType) generic).getActualTypeArguments()[1], depth));
        }
        else if (raw.getName().startsWith("org.apache.cassandra.") && depth < MAX_DEPTH)
        {
            out.put("type", "object");
            // One-argument constructors are the other forms that SnakeYAML accepts: a word, or a list around one mapping.
            for (Constructor<?> c : raw.getConstructors())
                if (c.getParameterCount() == 1)
                {
                    if (c.getParameterTypes()[0] == String.class)
                        out.put("scalar", true);
                    if (c.getParameterTypes()[0] == Map.class)
                        out.put("sequence", true);
                }
            out.put("fields", new ArrayList<Object>(fields(raw, null, depth + 1).values()));
            Map<?, ?> old = (Map<?, ?>) replacements.get(raw);
            if (old != null)
                for (Object replacement : new TreeMap<Object, Object>(old).values())
                {
                    @SuppressWarnings("unchecked") List<Object> list = (List<Object>) out.get("fields");
                    list.add(renamed(replacement));
                }
        }
        else
            out.put("type", "any");
    }

    private Map<String, Object> element(Type type, int depth) throws Exception
    {
        Map<String, Object> out = new LinkedHashMap<>();
        if (type instanceof Class)
            describe(out, (Class<?>) type, type, depth);
        else if (type instanceof ParameterizedType)
            describe(out, (Class<?>) ((ParameterizedType) type).getRawType(), type, depth);
        else
            out.put("type", "any");
        return out;
    }

    private static boolean isSpec(Class<?> type)
    {
        String n = type.getName();
        return n.startsWith("org.apache.cassandra.config.Duration") || n.startsWith("org.apache.cassandra.config.DataStorage")
               || n.startsWith("org.apache.cassandra.config.DataRate");
    }

    /** The smallest unit and the largest value are part of the class's name: IntMillisecondsBound, LongBytesPerSecondBound. */
    private static void describeSpec(Map<String, Object> out, Class<?> spec)
    {
        String outer = spec.getName();
        String inner = spec.getSimpleName();
        out.put("type", outer.contains("DataStorage") ? "size" : outer.contains("DataRate") ? "rate" : "duration");
        String unit = inner.replaceFirst("^(Int|Long)", "").replaceFirst("Bound$", "");
        switch (unit)
        {
            case "Nanoseconds": out.put("unit", "ns"); break;
            case "Microseconds": out.put("unit", "us"); break;
            case "Milliseconds": out.put("unit", "ms"); break;
            case "Seconds": out.put("unit", "s"); break;
            case "Minutes": out.put("unit", "m"); break;
            case "Bytes": out.put("unit", "B"); break;
            case "Kibibytes": out.put("unit", "KiB"); break;
            case "Mebibytes": out.put("unit", "MiB"); break;
            case "BytesPerSecond": out.put("unit", "B/s"); break;
            default: throw new IllegalStateException("unknown unit in " + spec.getName());
        }
        if (inner.startsWith("Int"))
            out.put("bound", "int");
    }

    private static Object field(Object o, String name) throws Exception
    {
        Field f = o.getClass().getField(name);
        return f.get(o);
    }

    /** JSON with one setting per line: a new release shows as a readable difference. */
    private static void print(PrintStream out, Map<String, Object> table, String indent)
    {
        out.println("{");
        out.println("  \"line\": " + json(table.get("line")) + ",");
        out.println("  \"releases\": " + json(table.get("releases")) + ",");
        out.println("  \"settings\": [");
        List<?> settings = (List<?>) table.get("settings");
        for (int i = 0; i < settings.size(); i++)
            out.println("    " + json(settings.get(i)) + (i + 1 < settings.size() ? "," : ""));
        out.println("  ]");
        out.print("}");
    }

    private static String json(Object o)
    {
        StringBuilder b = new StringBuilder();
        if (o instanceof Map)
        {
            b.append('{');
            for (Map.Entry<?, ?> e : ((Map<?, ?>) o).entrySet())
                b.append(b.length() > 1 ? ", " : "").append(json(e.getKey())).append(": ").append(json(e.getValue()));
            return b.append('}').toString();
        }
        if (o instanceof List)
        {
            b.append('[');
            for (Object e : (List<?>) o)
                b.append(b.length() > 1 ? ", " : "").append(json(e));
            return b.append(']').toString();
        }
        if (o instanceof Boolean)
            return o.toString();
        b.append('"');
        for (char c : o.toString().toCharArray())
            if (c == '"' || c == '\\')
                b.append('\\').append(c);
            else if (c < 0x20)
                b.append(String.format("\\u%04x", (int) c));
            else
                b.append(c);
        return b.append('"').toString();
    }
}
